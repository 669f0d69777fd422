#ifndef GANNET_TESTS_MODEL_ITEM_LEASE_MODEL_H_
#define GANNET_TESTS_MODEL_ITEM_LEASE_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::item_lease {

// Leases on popular items (docs/decisions/2026-11-29-item-leases.md), by which clients answer GETs
// from their own memory. One server, which never fails: item_lease_owner_model.h has the others.
//
// The server keeps a header {generation, end}, and the commit words of the items that are leased.
// Until `end` no item changes whose word is there. Clients READ the header, and then words. A
// client has a copy of every item that was ever live, so it answers as much as any client could: if
// a word that it READ counts under its header's generation, and the header's end is not over.
//
// Each word of a READ is sampled at a moment of its own. The READ of a header is one step: if it
// took longer, the client would know less meanwhile, and no more afterwards.
//
// What is to hold: nobody answers from a copy that is not the key's item any more.
//
// Times are those that are left, so the model is finite without a bound on writes. The clients'
// bound of the server's clock is exact, the weakest one that is right. Steps under a key's lock are
// single ones, and a key may move, and others may do anything, between two of them.
struct ItemLeaseRules {
  enum class Order : uint8_t { kWordGenerationEnd, kGenerationFirst, kEndFirst, kNoGeneration };
  // 1. Words count under a generation whose header was READ before them. A header is whole.
  bool words_after_header = true;
  bool header_is_whole = true;
  // 2. To end a lease, the key's words go, then the generation grows, then the end is read, once. A
  // write is decided when that end is over. Until then nobody leases the key again.
  Order order = Order::kWordGenerationEnd;
  bool waits = true;
  bool bars = true;
  // The generation grows at once, or in the same store as the next end. Both are right.
  bool grows_at_once = true;
  // Who renews the end holds the generation, too, and stores no former one.
  bool renews_in_one_step = true;
  // 3. All that changes an item is a write: evictions, FLUSH (one end for all keys, but each key is
  // looked at when it is deleted). A lease that ends without a write is over at its end, too.
  bool evictions_wait = true;
  bool ended_leases_stay_marked = true;
  bool flush_looks_at_keys = true;
  // 4. The mark is the key's: a move leaves the old place's word, and a write takes out both. All
  // look at the mark when they decide. No lease begins while a change of the key waits.
  bool mark_is_the_keys = true;
  bool takes_out_by_key = true;
  bool updates_look = true;
  bool looks_under_lock = true;
  bool no_grant_while_a_change_waits = true;
  // 5. The end never decreases; a client looks at its copy's own expiry.
  bool end_never_decreases = true;
  bool looks_at_expiry = true;
  // 7. The server's clock never jumps ahead. (6 and 8 are about who serves.)
  bool clock_never_jumps = true;
  // 9. A client goes by its upper bound of the server's clock, by a clock read within the call. Own
  // writes come first.
  bool upper_bound = true;
  bool clock_read_within_call = true;
  bool own_writes_first = true;
};

struct ItemLeaseScenario {
  uint8_t keys = 2;
  uint8_t clients = 1;
  uint8_t lease = 2;     // L
  bool moves = false;    // of items to other places
  bool waiting = false;  // decided changes wait for a disk or a group
  bool expiry = false;   // items may have one
  bool flush = false;
  bool own_write = false;  // the first client writes the first key, and GETs it behind that
};

class ItemLeaseModel {
 public:
  static constexpr int kKeysMax = 2;
  static constexpr int kClientsMax = 2;
  static constexpr uint8_t kTimeToLive = 2;

  // A commit word: of the key's item, of an item that is gone, of one that expired at its time.
  enum class Word : uint8_t { kNone, kRight, kStale, kExpired };
  // The mark of a key. kEnds1 and kEnds2: one or two of the three steps are done.
  enum class Mark : uint8_t { kNone, kLeased, kEnds1, kEnds2, kEnded };
  // A READ of words under way: posted behind its header, or behind one of another generation.
  enum class Reading : uint8_t { kNothing, kOfHeader, kOfOlderHeader };
  enum class Noted : uint8_t { kNothing, kPresent, kFormer, kOlder };
  enum class Half : uint8_t { kNone, kOfWords, kOther, kOtherOutOfDate };

  struct Key {
    uint8_t there;   // it has an item
    uint8_t here;    // the word of the item's place is in the server's array
    Word old_place;  // another word of the key there
    Mark mark;
    uint8_t until;    // left of the end that was read
    uint8_t waiting;  // a decided change waits
    uint8_t looked;   // a write has looked at the mark, and holds no lock
    uint8_t expiry;   // left of the item's time; 0: it does not expire
  };
  struct Client {
    uint8_t current;  // its header has the server's generation
    uint8_t former;   // or the one before
    uint8_t end;      // left of its header's end, plus 1; 0: it is over for longer than a moment
    std::array<Word, kKeysMax> words;    // that count under its header's generation
    std::array<Word, kKeysMax> samples;  // of the READ under way
    uint8_t sampled;                     // a bit for each key
    Reading reading;
    uint8_t noted;  // a clock of before the call was before the end
    Half half;      // of a header that is READ in two halves
  };
  struct State {
    std::array<Key, kKeysMax> keys;
    std::array<Client, kClientsMax> clients;
    uint8_t end;         // left of what the header says
    uint8_t grows;       // the generation grows with the next end
    Noted noted;         // the generation that the next end will be stored with
    uint8_t flush;       // steps that a FLUSH has done
    uint8_t flush_left;  // of the end that it has read
    uint8_t jumped;
    uint8_t own_write;  // the first client's write of the first key is under way
  };

  ItemLeaseModel(const ItemLeaseRules& rules, const ItemLeaseScenario& scenario)
      : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  using Order = ItemLeaseRules::Order;
  void TimeSteps(const State& state, const Emit& emit) const;
  void HeaderSteps(const State& state, const Emit& emit) const;
  void RenewalSteps(const State& state, const Emit& emit) const;
  void LeaseSteps(const State& state, int k, const Emit& emit) const;
  void EndingSteps(const State& state, int k, const Emit& emit) const;
  void WriteSteps(const State& state, int k, const Emit& emit) const;
  void FlushSteps(const State& state, const Emit& emit) const;
  void ClientSteps(const State& state, int c, const Emit& emit) const;
  void WordSteps(const State& state, int c, const Emit& emit) const;
  void HalfHeaderSteps(const State& state, int c, const Emit& emit) const;
  // Changes the key's item: to all that knew it, it is out of date.
  State Published(State state, int k, bool there, uint8_t expiry) const;
  // The first or second step of an end, in the order of the rules.
  void EndStep(State* state, Key* key, bool first) const;
  void TakeWordsOut(Key* key) const;
  void GrowGeneration(State* state) const;
  static void Expire(State* state, int k);
  // To clients, the key's right word is `now` from now on.
  static void Outdate(State* state, int k, Word now);
  static void TakeHeader(Client* client, bool of_words, bool words_after_header);
  // Whether a write of the key may be decided.
  bool MayWrite(const Key& key) const;
  bool Believes(const State& state, int c, int k) const;

  const ItemLeaseRules rules_;
  const ItemLeaseScenario scenario_;
};

}  // namespace gannet::model::item_lease

#endif  // GANNET_TESTS_MODEL_ITEM_LEASE_MODEL_H_
