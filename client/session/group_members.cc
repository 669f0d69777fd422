#include "client/session/group_members.h"

#include <algorithm>

#include "common/protocol/partition_map.h"

namespace gannet {

void GroupMembers::Restart(bool group, int64_t now_ns) {
  next_map_ns_ = group ? now_ns : kNever;
  period_ns_ = kPeriodNs;
  asked_ = whole_ = false;
  position_ = 0;
}

uint64_t GroupMembers::Ask(int64_t now_ns) {
  asked_ = true;
  if (position_ == 0) {
    bytes_.clear();
    next_map_ns_ = now_ns + std::exchange(period_ns_, std::min(2 * period_ns_, kPeriodNsMax));
  }
  return position_;
}

void GroupMembers::OnReply(const ReplyView& reply) {
  asked_ = false;
  const uint64_t from = std::exchange(position_, 0);
  const auto status = static_cast<ReplyStatus>(reply.header.status);
  if (status == ReplyStatus::kUnimplemented) next_map_ns_ = kNever;  // an earlier version
  if (status != ReplyStatus::kOk) return;                            // it has no map yet
  bytes_.append(reply.value);
  const uint64_t next = reply.header.list.next;
  whole_ = next == 0;
  if (next > from && bytes_.size() <= kPartitionMapBytesMax) position_ = next;
}

std::optional<std::vector<std::string>> GroupMembers::Take(std::string_view connected) {
  if (!std::exchange(whole_, false)) return std::nullopt;
  // If the map changed between two pieces, the next one will do.
  std::optional<PartitionMap> map = DecodePartitionMap(std::exchange(bytes_, {}));
  if (!map) return std::nullopt;
  const auto is_mine = [&](const PartitionMap::Group& group) {
    if (!name_.empty()) return group.name == name_;
    return map->groups.size() == 1 ||
           std::ranges::find(group.addresses, connected) != group.addresses.end();
  };
  const auto mine = std::ranges::find_if(map->groups, is_mine);
  if (mine == map->groups.end()) return std::nullopt;
  return std::move(mine->addresses);
}

}  // namespace gannet
