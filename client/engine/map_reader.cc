// When to ask for the map, and how its pieces make one. Pieces come from one server: if another
// one is asked, the reading begins anew. What was read is decoded by Take, once all of it is
// there.

#include "client/engine/map_reader.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace gannet {

void MapReader::OnConnected(int64_t now_ns) {
  next_ns_ = std::min(next_ns_, now_ns);
  period_ns_ = kPeriodNs;
}

void MapReader::AskAnew(int64_t now_ns) {
  asked_ = kInvalidOp;
  position_ = 0;
  next_ns_ = now_ns;
}

void MapReader::OnLost(uint32_t server, int64_t now_ns) {
  if (server == asked_ || server == teller()) AskAnew(now_ns);
}

void MapReader::ForgetServers(int64_t now_ns) {
  if (asked_ != kInvalidOp || position_ != 0) AskAnew(now_ns);
}

void MapReader::WantSoon(bool soon, int64_t now_ns) {
  if (std::exchange(soon_, soon) || !soon) return;
  if (now_ns - read_ns_ < kSoonNsMax) return;
  soon_ns_ = kSoonNs;
  soon_at_ns_ = soon_since_ns_ = now_ns;
}

void MapReader::OnNewer() {
  soon_ns_ = kSoonNs;
  soon_at_ns_ = read_ns_ + kSoonNs;
  soon_since_ns_ = read_ns_;
}

int64_t MapReader::due_ns() const {
  if (asked_ != kInvalidOp) return asked_ns_ + kPatienceNs;
  if (position_ != 0) return 0;
  return soon_ ? std::min(next_ns_, soon_at_ns_) : next_ns_;
}

uint64_t MapReader::Ask(uint32_t server, int64_t now_ns) {
  GANNET_CHECK(now_ns >= due_ns(), "the map is asked for too early");
  if (asked_ != kInvalidOp || server != teller_) position_ = 0;
  asked_ = server;
  asked_ns_ = now_ns;
  if (position_ == 0) {
    bytes_.clear();
    unchanged_ = false;
    regular_ = now_ns >= next_ns_ || !answered_;
    if (regular_) {
      next_ns_ = now_ns + period_ns_;
      period_ns_ = std::min(2 * period_ns_, kPeriodNsMax);
    }
  }
  return position_;
}

bool MapReader::OnReply(uint32_t server, const ReplyView& reply, int64_t now_ns) {
  if (server != asked_) return false;  // it was given up
  asked_ = kInvalidOp;
  teller_ = server;
  const uint64_t from = std::exchange(position_, 0);
  const auto status = static_cast<ReplyStatus>(reply.header.status);
  if (status == ReplyStatus::kUnimplemented) {  // an earlier version
    soon_ = false;
    next_ns_ = kNever;
  }
  if (status != ReplyStatus::kOk) {  // it has no map yet
    bytes_.clear();
    answered_ = true;
    return End(now_ns);
  }
  bytes_.append(reply.value);
  const uint64_t next = reply.header.list.next;
  unchanged_ = !regular_ && from == 0 && HasKnownRevision();
  if (unchanged_) bytes_.clear();
  if (next == 0 || unchanged_) return End(now_ns);
  if (next > from && bytes_.size() <= kPartitionMapBytesMax) position_ = next;
  return false;
}

// The bytes are not checked. If they are wrong, the map is read to its end a moment later.
bool MapReader::HasKnownRevision() const { return known_ != 0 && RevisionOfMap(bytes_) == known_; }

bool MapReader::End(int64_t now_ns) {
  read_ns_ = now_ns;
  soon_at_ns_ = now_ns + soon_ns_;
  const bool at_first = now_ns - soon_since_ns_ < kAtFirstNs;
  if (soon_) soon_ns_ = std::min(2 * soon_ns_, at_first ? kSoonNsAtFirst : kSoonNsMax);
  return true;
}

std::optional<PartitionMap> MapReader::Take() {
  std::optional<PartitionMap> map = DecodePartitionMap(std::exchange(bytes_, {}));
  answered_ |= map.has_value();
  return map;
}

}  // namespace gannet
