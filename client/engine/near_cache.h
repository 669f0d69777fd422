#ifndef GANNET_CLIENT_ENGINE_NEAR_CACHE_H_
#define GANNET_CLIENT_ENGINE_NEAR_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "client/session/client_session.h"
#include "client/tables/item_copies.h"
#include "common/base/clock.h"
#include "common/base/server_time.h"

namespace gannet {

// What a client answers GETs from without the server: copies of items that the server leases, and
// the READs by which it learns whether they may be used (docs/item-leases.md).
//
//   item READ again and again -> READ header -> READ words -> item READ, leased: copied
//   GET of a copy, in time -> answered; near the end -> READ header (-> READ words)
//
// 1. One READ of header or words is in flight at most, so words count under the header of the READ
//    that completed before theirs was posted.
// 2. A copy answers at `now_ns` if its words count, the server's clock has surely not come to the
//    end of the leases, nor to the copy's expiry, and the server owned the item by then
//    (PrimaryLeaseWatch::OwnedUntilNs). `now_ns` must be read after the GET was begun.
// 3. Header and words go with the connection, and with each newer map.
// 4. It READs header and words for GETs that come so densely that copies would answer kWorthReads
//    of them in the time of a lease. If the last words answered nothing, it waits twice as long
//    before it READs them again, up to a day. It does not wait if one content was READ so often
//    that the server may have leased it; if that answered nothing, it takes twice as many next.
//
// One owner thread.
class NearCache {
 public:
  static constexpr uint64_t kBytesMin = 4 << 10;
  static constexpr uint64_t kBytesMax = uint64_t{64} << 30;
  // One of so many GETs that are READ is looked at.
  static constexpr uint32_t kSampleEvery = 8;
  // A READ of header or words is worth it for so many answers.
  static constexpr uint32_t kWorthReads = 8;

  explicit NearCache(uint64_t bytes_max) : bytes_max_(bytes_max), copies_(bytes_max) {}

  // Each of so many caches has its part of the memory from now on.
  void Share(uint32_t share) { copies_.set_bytes_max(bytes_max_ / share); }
  // A connection was made to this run of the server.
  void OnReady(uint64_t incarnation);
  // The connection is gone, with what was in flight.
  void OnLost(ClientSession& session);
  // The client has a newer map.
  void DropLeases();

  // Returns whether copies answer now. REQUIRES: the session is ready.
  bool Holds(ClientSession& session, int64_t now_ns) {
    return now_ns < until_ns_ || HoldsStill(session, now_ns);
  }
  // Returns the copy that answers a GET now, or nullptr. REQUIRES: Holds.
  ItemCopies::Copy* Find(const ClientSession& session, KeyHash hash, std::string_view key,
                         int64_t now_ns) {
    ItemCopies::Copy* const copy = copies_.Find(hash, key);
    if (copy == nullptr) return nullptr;
    const Expiry expiry = copy->header.expiry();
    if (!expiry.never() && !session.heartbeats().server_time().SurelyBefore(expiry.time(), now_ns))
        [[unlikely]]
      return nullptr;
    return copy;
  }
  // Copies answered GETs whose completions have so many bytes together, UsageLog::kBytesOfHit each:
  // as there, to divide them is left to who asks. Returns true if the lease ends soon, and READs
  // the header then.
  bool OnAnswersIn(ClientSession& session, ptrdiff_t bytes, int64_t now_ns) {
    answers_bytes_ += static_cast<uint64_t>(bytes);
    if (now_ns < soon_ns_ || bytes == 0) [[likely]]
      return false;
    Ask(session, now_ns);
    return true;
  }
  // No copy answers a GET. READs the header if one would with a newer header.
  void OnGetInVain(ClientSession& session, KeyHash hash, std::string_view key, int64_t now_ns) {
    if (now_ns < until_ns_ || copies_.Find(hash, key) == nullptr) return;
    ++over_;
    if (IsWorthIt(1, now_ns)) Ask(session, now_ns);
  }
  // Returns whether the GET that is to be READ now should be looked at (Note).
  bool Samples() { return ++gets_ % kSampleEvery == 0; }
  // An item was READ, and has proven itself.
  void Note(ClientSession& session, KeyHash hash, std::string_view key, std::string_view value,
            const ItemHeader& header, Slot slot, int64_t now_ns);
  // The READ of header or words is done.
  void OnRead(ClientSession& session, int64_t now_ns);

  uint64_t answers() const { return answers_bytes_ / UsageLog::kBytesOfHit; }
  uint64_t reads() const { return reads_; }
  uint64_t over() const { return over_; }
  uint64_t items() const { return copies_.size(); }

 private:
  enum class Reading : uint8_t { kNothing, kHeader, kWords };

  // How long it waits before it READs words again for items that were not leased.
  static constexpr int64_t kPauseNsMin = 100 * kNsPerMs;
  static constexpr int64_t kPauseNsMax = 24 * 3600 * kNsPerSecond;
  // Or until so many samples were of one content. The server leases what was READ 1,000 times.
  static constexpr uint32_t kOftenMin = 1024 / kSampleEvery;
  static constexpr uint32_t kOftenMax = uint32_t{1} << 30;

  bool HoldsStill(ClientSession& session, int64_t now_ns);
  bool IsWorthIt(uint32_t answers, int64_t now_ns);
  void Ask(ClientSession& session, int64_t now_ns);
  bool Read(ClientSession& session, Reading what, uint64_t offset, uint64_t bytes);
  void OnHeader(ClientSession& session, const std::byte* read, int64_t now_ns);
  void OnWords(const std::byte* read, uint32_t words, int64_t now_ns);
  void Pause(int64_t now_ns);
  void Reset();

  const uint64_t bytes_max_;
  ItemCopies copies_;
  int64_t until_ns_ = kNever;  // copies surely answer before this
  int64_t soon_ns_ = kNever;   // the end of the leases is near from then on
  // The READ in flight.
  Reading reading_ = Reading::kNothing;
  bool stale_ = false;  // what it brings is of an older map
  LentBuffer buffer_;
  bool wants_words_ = false;  // behind the next header, whatever its generation is
  // When to READ.
  int64_t lease_ns_ = 0;
  int64_t next_ask_ns_ = kNever;    // not before this
  int64_t next_words_ns_ = kNever;  // no words before this, if the generation is the same
  int64_t pause_ns_ = kPauseNsMin;
  uint32_t often_ = kOftenMin;
  bool for_often_ = false;  // the next words are READ before the pause is over
  int64_t worth_from_ns_ = kNever;
  uint32_t worth_ = 0;  // answers that copies would have given since then
  uint32_t gets_ = 0;
  // Counts.
  uint64_t answers_bytes_ = 0;
  uint64_t answers_before_words_ = 0;
  uint64_t reads_ = 0;
  uint64_t over_ = 0;  // GETs that had a copy whose lease was perhaps over

  static constexpr int64_t kNever = INT64_MIN / 2;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_NEAR_CACHE_H_
