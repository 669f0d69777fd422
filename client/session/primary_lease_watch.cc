#include "client/session/primary_lease_watch.h"

#include <optional>

namespace gannet {

void PrimaryLeaseWatch::Restart(const Grant& grant, int64_t asked_ns, int64_t now_ns) {
  on_ = grant.history != 0;
  end_ns_ = replies_end_ns_ = INT64_MIN / 2;
  asked_ns_ = asked_first_ns_ = kNever;
  held_.clear();
  if (on_) OnTold(grant.primary_lease_ms, asked_ns, now_ns);
}

void PrimaryLeaseWatch::OnTold(uint16_t left_ms, int64_t asked_ns, int64_t now_ns) {
  const int64_t left_ns = left_ms * kNsPerMs;
  if (left_ms > 0) {
    length_ns_ = std::max(seen_ ? length_ns_ : kLengthNsMin, left_ns);
    seen_ = true;
    left_ns_ = left_ns;
  }
  end_ns_ = std::max(end_ns_, EndNs(left_ms, asked_ns));
  if (ValidAt(now_ns)) asked_first_ns_ = kNever;
}

bool PrimaryLeaseWatch::GivesUp(int64_t now_ns, bool busy) {
  if (!busy && !AnswersAlone(now_ns)) asked_first_ns_ = kNever;  // an idle session does not ask
  return on_ && !ValidAt(now_ns) && asked_first_ns_ != kNever &&
         now_ns - asked_first_ns_ >= length_ns_;
}

void PrimaryLeaseWatch::Disbelieve(std::span<const ClientConnection> connections) {
  for (const ClientConnection& connection : connections) {
    std::optional<uint32_t> newest;
    for (const ibv_wc& completion : held_) {
      const WrId id = WrId::Unpack(completion.wr_id);
      const bool send = id.kind == static_cast<uint8_t>(ConnectionWork::kSend);
      if (send && id.owner == connection.id) newest = id.slot;
    }
    if (newest.has_value()) disbelieved_ += connection.work.ReadsUpTo(*newest);
  }
  ForgetHeld();
}

int64_t PrimaryLeaseWatch::IdleNs(int64_t now_ns) const {
  if (!on_) return INT64_MAX;
  int64_t at_ns = AskNs();
  if (asked_first_ns_ != kNever) {
    at_ns = std::min(at_ns, std::max(end_ns_, asked_first_ns_ + length_ns_));
  }
  return std::max<int64_t>(at_ns - now_ns, 0);
}

}  // namespace gannet
