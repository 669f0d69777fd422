// When a client READs a server's leases, and what becomes of what it READ. All READs follow from
// GETs (Find, Note), so a client that asks for nothing READs nothing.

#include "client/engine/near_cache.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "common/layout/item_lease_header.h"

namespace gannet {

void NearCache::OnReady(uint64_t incarnation) {
  Reset();
  copies_.Restart(incarnation);
}

void NearCache::OnLost(ClientSession& session) {
  if (buffer_.data != nullptr) session.memory().items.Return(std::exchange(buffer_, {}));
  Reset();
  copies_.DropLeases();
}

void NearCache::Reset() {
  reading_ = Reading::kNothing;
  stale_ = wants_words_ = false;
  until_ns_ = next_ask_ns_ = next_words_ns_ = worth_from_ns_ = kNever;
  pause_ns_ = kPauseNsMin;
  often_ = kOftenMin;
}

void NearCache::DropLeases() {
  stale_ = reading_ != Reading::kNothing;
  until_ns_ = kNever;
  copies_.DropLeases();
}

// What is known of the server's clock and of its primary's lease only becomes better while a
// connection lasts. So what was sure once stays so, until header or words are READ again. The
// header is READ again when so much of the lease is over that it was surely renewed meanwhile.
bool NearCache::HoldsStill(ClientSession& session, int64_t now_ns) {
  constexpr int64_t kRoundingNs = 2 * kNsPerMs;  // of ServerTimeBound
  const int64_t end_ns = session.heartbeats().server_time().SurelyBeforeUntilNs(copies_.end());
  soon_ns_ = end_ns - session.requests().item_leases().lease_ms * kNsPerMs / 4 - kRoundingNs;
  until_ns_ = std::min(end_ns, session.lease().OwnedUntilNs());
  return now_ns < until_ns_;
}

// Copies would have answered so many GETs. Returns whether they would answer enough of them in the
// time of a lease.
bool NearCache::IsWorthIt(uint32_t answers, int64_t now_ns) {
  if (now_ns >= worth_from_ns_ + lease_ns_) {
    worth_from_ns_ = now_ns;
    worth_ = 0;
  }
  worth_ += answers;
  return worth_ >= kWorthReads;
}

void NearCache::Note(ClientSession& session, KeyHash hash, std::string_view key,
                     std::string_view value, const ItemHeader& header, Slot slot, int64_t now_ns) {
  const ItemLeasesReply& leases = session.requests().item_leases();
  if (leases.words == 0 || value.size() != header.value_bytes) return;
  if (value.size() > kLeasedValueBytesMax) return;
  lease_ns_ = leases.lease_ms * kNsPerMs;
  const uint32_t times = copies_.Note(hash, key, value, header, slot);
  if (times == 0) return;
  // Half of what the sample stands for, so that one GET that is repeated once is not enough.
  if (!IsWorthIt(kSampleEvery / 2, now_ns)) return;
  const bool pauses = now_ns < next_words_ns_;
  if (pauses && times < often_) return;
  if (!wants_words_) for_often_ = pauses;
  wants_words_ = true;
  Ask(session, now_ns);
}

// READs the header, if none of that is under way. The server renews it twice in a lease, so it
// is of no use to READ it much more often.
void NearCache::Ask(ClientSession& session, int64_t now_ns) {
  if (reading_ != Reading::kNothing || now_ns < next_ask_ns_) return;
  if (!Read(session, Reading::kHeader, 0, sizeof(ItemLeaseHeader))) return;
  next_ask_ns_ = now_ns + lease_ns_ / 8;
}

// Returns false if there is no room now: the next GET tries again.
bool NearCache::Read(ClientSession& session, Reading what, uint64_t offset, uint64_t bytes) {
  const ItemLeasesReply& leases = session.requests().item_leases();
  if (leases.words == 0 || !session.sends().CanSend()) return false;
  buffer_ = session.memory().items.Take(static_cast<uint32_t>(bytes));
  if (buffer_.data == nullptr) return false;
  reading_ = what;
  ++reads_;
  session.sends().SendReadOf(leases.address, leases.rkey,
                             {.local = buffer_.data,
                              .offset = offset,
                              .op = 0,
                              .bytes = static_cast<uint32_t>(bytes),
                              .keys = buffer_.keys},
                             InFlightWork::Kind::kOwnRead);
  return true;
}

void NearCache::OnRead(ClientSession& session, int64_t now_ns) {
  const Reading read = std::exchange(reading_, Reading::kNothing);
  const LentBuffer buffer = std::exchange(buffer_, {});
  until_ns_ = kNever;
  if (!std::exchange(stale_, false)) {
    if (read == Reading::kHeader) OnHeader(session, buffer.data, now_ns);
    if (read == Reading::kWords)
      OnWords(buffer.data, session.requests().item_leases().words, now_ns);
  }
  session.memory().items.Return(buffer);
}

// A torn header tells nothing: the next GET READs it again. If the end is over, or the server
// leases nothing, words would answer nothing.
void NearCache::OnHeader(ClientSession& session, const std::byte* read, int64_t now_ns) {
  ItemLeaseHeader header;
  std::memcpy(&header, read, sizeof(header));
  if (!ItemLeaseValid(header, session.grant().incarnation)) return;
  copies_.OnHeader(header);
  const ServerTime end = ServerTime::FromMs(header.end_ms);
  if (end <= session.heartbeats().server_time().Upper(now_ns)) return Pause(now_ns);
  if (!copies_.WantsWords() && !wants_words_) return;
  const uint32_t words = session.requests().item_leases().words;
  Read(session, Reading::kWords, ItemLeaseBytes(0), words * sizeof(uint64_t));
}

void NearCache::OnWords(const std::byte* read, uint32_t words, int64_t now_ns) {
  copies_.OnWords({reinterpret_cast<const uint64_t*>(read), words});
  Pause(now_ns);
}

void NearCache::Pause(int64_t now_ns) {
  const bool answered = answers() != std::exchange(answers_before_words_, answers());
  if (answered) {
    pause_ns_ = kPauseNsMin;
    often_ = kOftenMin;
  } else if (for_often_) {
    often_ = std::min(2 * often_, kOftenMax);
  } else {
    pause_ns_ = std::min(2 * pause_ns_, kPauseNsMax);
  }
  next_words_ns_ = now_ns + pause_ns_;
  wants_words_ = for_often_ = false;
}

}  // namespace gannet
