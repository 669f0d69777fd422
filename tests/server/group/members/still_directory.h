#ifndef GANNET_TESTS_SERVER_GROUP_MEMBERS_STILL_DIRECTORY_H_
#define GANNET_TESTS_SERVER_GROUP_MEMBERS_STILL_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/group/replica/group_directory.h"

namespace gannet {

// The process that a test is about, and another one of its group.
inline const GroupMember kSelf = {.node = "b", .incarnation = 2};
inline const GroupMember kOther = {.node = "a", .incarnation = 1};

// What a group's members are told, as a test sets it.
struct StillDirectory final : GroupDirectory {
  GroupTerms terms() const override { return {}; }
  void Announce(const GroupMember&, std::string_view, uint64_t) override {}
  std::vector<std::string> WithItems() const override { return with_items; }
  std::optional<std::string> AddressOf(const GroupMember&) const override { return address; }
  std::optional<std::string> WantedSuccessor() const override { return std::nullopt; }
  void ForgetWantedSuccessor() override {}
  const GroupPartitions* Partitions() const override { return &partitions; }

  std::vector<std::string> with_items;
  std::optional<std::string> address;  // of each member
  GroupPartitions partitions;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_MEMBERS_STILL_DIRECTORY_H_
