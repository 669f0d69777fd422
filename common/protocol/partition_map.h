#ifndef GANNET_COMMON_PROTOCOL_PARTITION_MAP_H_
#define GANNET_COMMON_PROTOCOL_PARTITION_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gannet {

inline constexpr int kPartitionBits = 10;
inline constexpr uint32_t kPartitions = 1u << kPartitionBits;
inline constexpr size_t kGroupsMax = kPartitions;
inline constexpr size_t kMembersMax = 16;  // of a group

// Returns the partition of a key: the upper 10 bits of its unseeded XXH3. Servers' indexes have
// seeds of their own, so this hash says nothing of a key's place there.
uint32_t PartitionOf(std::string_view key);

// Which group of a cluster has which keys, and where its members can be reached.
struct PartitionMap {
  struct Group {
    std::string name;
    std::vector<std::string> addresses;  // "HOST:PORT"; of those members that have run

    bool operator==(const Group&) const = default;
  };

  uint64_t revision = 0;  // grows by one with each change; 0: none was made
  std::vector<Group> groups;
  std::vector<uint16_t> partitions;  // kPartitions places in `groups`
  // What is different between two maps: kPartitions revisions at which each partition was last
  // closed, opened, or given to another group. To compare groups is not enough, as it may have
  // moved there and back in between. Empty if there were no changes.
  std::vector<uint64_t> changed;
  std::vector<bool> closed;  // kPartitions: nobody serves it now. Empty if there were no changes

  // Returns the revision at which a partition was last changed; 0: never.
  uint64_t ChangedAt(uint32_t partition) const { return changed.empty() ? 0 : changed[partition]; }
  bool IsClosed(uint32_t partition) const { return !closed.empty() && closed[partition]; }
  bool operator==(const PartitionMap&) const = default;
};

// How a map is told to clients: kMap replies carry these bytes, one piece after the other. They
// begin with a PartitionMapStart. It is followed by `partitions`, 2 bytes each, the highest bit of
// which says that it is closed; if there were changes, by `changed`, 8 bytes each; and by the
// groups: the name's length (1 byte), the name, the number of addresses (1 byte), and for each its
// length (1 byte) and itself.
struct PartitionMapStart {
  uint64_t checksum;  // XXH3 of all that follows. The map may change between two pieces
  uint64_t revision;
  uint32_t bytes;  // of all
  uint16_t groups;
  uint16_t has_changes;  // 1, or 0: all that clients take which know of no changes
};
static_assert(sizeof(PartitionMapStart) == 24 && std::is_trivially_copyable_v<PartitionMapStart>);

// More than any cluster needs, and little enough to be kept in memory.
inline constexpr size_t kPartitionMapBytesMax = 8 << 20;

// REQUIRES: a map that DecodePartitionMap accepts.
std::string EncodePartitionMap(const PartitionMap& map);
// Returns nullopt if the bytes are no map, whoever made them.
std::optional<PartitionMap> DecodePartitionMap(std::string_view bytes);
// Returns what the first bytes of a map tell; nullopt: they are too few. They are not checked: that
// needs the whole map.
std::optional<PartitionMapStart> StartOfMap(std::string_view piece);
std::optional<uint64_t> RevisionOfMap(std::string_view piece);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_PARTITION_MAP_H_
