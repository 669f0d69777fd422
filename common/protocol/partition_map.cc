#include "common/protocol/partition_map.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace gannet {
namespace {

constexpr size_t kBytesOfPartitions = kPartitions * sizeof(uint16_t);
constexpr size_t kBytesOfChanges = kPartitions * sizeof(uint64_t);
constexpr uint16_t kClosedBit = 1 << 15;
static_assert(kGroupsMax <= kClosedBit);

void AppendText(std::string* bytes, std::string_view text) {
  bytes->push_back(static_cast<char>(text.size()));
  bytes->append(text);
}

// Cuts a number of one byte off.
std::optional<size_t> TakeByte(std::string_view* bytes) {
  if (bytes->empty()) return std::nullopt;
  const auto byte = static_cast<uint8_t>(bytes->front());
  bytes->remove_prefix(1);
  return byte;
}

// Cuts a text that is not empty off.
std::optional<std::string> TakeText(std::string_view* bytes) {
  const std::optional<size_t> size = TakeByte(bytes);
  if (!size || *size == 0 || *size > bytes->size()) return std::nullopt;
  std::string text(bytes->substr(0, *size));
  bytes->remove_prefix(*size);
  return text;
}

std::optional<PartitionMap::Group> TakeGroup(std::string_view* bytes) {
  std::optional<std::string> name = TakeText(bytes);
  if (!name) return std::nullopt;
  const std::optional<size_t> addresses = TakeByte(bytes);
  if (!addresses || *addresses > kMembersMax) return std::nullopt;
  PartitionMap::Group group{.name = *std::move(name), .addresses = {}};
  for (size_t i = 0; i < *addresses; ++i) {
    std::optional<std::string> address = TakeText(bytes);
    if (!address) return std::nullopt;
    group.addresses.push_back(*std::move(address));
  }
  return group;
}

// Cuts off whose the partitions are, and when that changed. Returns false if they cannot be.
bool TakePartitions(const PartitionMapStart& start, std::string_view* bytes, PartitionMap* map) {
  const bool has_changes = start.has_changes != 0;
  const size_t size = kBytesOfPartitions + (has_changes ? kBytesOfChanges : 0);
  if (bytes->size() < size) return false;
  map->partitions.resize(kPartitions);
  std::memcpy(map->partitions.data(), bytes->data(), kBytesOfPartitions);
  if (has_changes) {
    map->closed.resize(kPartitions);
    map->changed.resize(kPartitions);
    std::memcpy(map->changed.data(), bytes->data() + kBytesOfPartitions, kBytesOfChanges);
    for (uint32_t i = 0; i < kPartitions; ++i) {
      map->closed[i] = (map->partitions[i] & kClosedBit) != 0;
      map->partitions[i] &= static_cast<uint16_t>(~kClosedBit);
      if (map->changed[i] > start.revision) return false;
    }
  }
  bytes->remove_prefix(size);
  return std::ranges::all_of(map->partitions, [&](uint16_t group) { return group < start.groups; });
}

uint64_t ChecksumOf(std::string_view bytes) {
  return Xxh3Unseeded(bytes.data() + sizeof(uint64_t), bytes.size() - sizeof(uint64_t));
}

}  // namespace

uint32_t PartitionOf(std::string_view key) {
  return static_cast<uint32_t>(Xxh3Unseeded(key.data(), key.size()) >> (64 - kPartitionBits));
}

std::string EncodePartitionMap(const PartitionMap& map) {
  const bool has_all_changes =
      map.changed.size() == kPartitions && map.closed.size() == kPartitions;
  GANNET_CHECK(map.partitions.size() == kPartitions &&
                   (has_all_changes || (map.changed.empty() && map.closed.empty())),
               "another number of partitions");
  const bool has_changes = !map.changed.empty();
  std::vector<uint16_t> partitions = map.partitions;
  for (size_t i = 0; i < map.closed.size(); ++i) {
    if (map.closed[i]) partitions[i] |= kClosedBit;
  }
  std::string bytes(sizeof(PartitionMapStart), '\0');
  bytes.append(reinterpret_cast<const char*>(partitions.data()), kBytesOfPartitions);
  if (has_changes) {
    bytes.append(reinterpret_cast<const char*>(map.changed.data()), kBytesOfChanges);
  }
  for (const PartitionMap::Group& group : map.groups) {
    AppendText(&bytes, group.name);
    bytes.push_back(static_cast<char>(group.addresses.size()));
    for (const std::string& address : group.addresses) AppendText(&bytes, address);
  }
  PartitionMapStart start = {.checksum = 0,
                             .revision = map.revision,
                             .bytes = static_cast<uint32_t>(bytes.size()),
                             .groups = static_cast<uint16_t>(map.groups.size()),
                             .has_changes = has_changes ? uint16_t{1} : uint16_t{0}};
  std::memcpy(bytes.data(), &start, sizeof(start));
  start.checksum = ChecksumOf(bytes);
  std::memcpy(bytes.data(), &start, sizeof(start));
  return bytes;
}

std::optional<PartitionMapStart> StartOfMap(std::string_view piece) {
  PartitionMapStart start;
  if (piece.size() < sizeof(start)) return std::nullopt;
  std::memcpy(&start, piece.data(), sizeof(start));
  return start;
}

std::optional<uint64_t> RevisionOfMap(std::string_view piece) {
  const std::optional<PartitionMapStart> start = StartOfMap(piece);
  if (!start) return std::nullopt;
  return start->revision;
}

std::optional<PartitionMap> DecodePartitionMap(std::string_view bytes) {
  const std::optional<PartitionMapStart> told = StartOfMap(bytes);
  if (!told) return std::nullopt;
  const PartitionMapStart& start = *told;
  if (start.bytes != bytes.size() || start.checksum != ChecksumOf(bytes) || start.groups == 0 ||
      start.groups > kGroupsMax || start.has_changes > 1 ||
      (start.has_changes == 1 && start.revision == 0)) {
    return std::nullopt;
  }
  PartitionMap map{
      .revision = start.revision, .groups = {}, .partitions = {}, .changed = {}, .closed = {}};
  std::string_view left = bytes.substr(sizeof(start));
  if (!TakePartitions(start, &left, &map)) return std::nullopt;
  for (uint16_t i = 0; i < start.groups; ++i) {
    std::optional<PartitionMap::Group> group = TakeGroup(&left);
    if (!group) return std::nullopt;
    map.groups.push_back(*std::move(group));
  }
  if (!left.empty()) return std::nullopt;
  return map;
}

}  // namespace gannet
