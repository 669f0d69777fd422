#include "common/cluster/cluster_keys.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/protocol/partition_map.h"

namespace gannet {
namespace {

constexpr std::string_view kConfigName = "config";
constexpr std::string_view kGroups = "groups/";
constexpr std::string_view kNodes = "nodes/";
constexpr std::string_view kVersions = "versions/";
constexpr std::string_view kRailsFolder = "rails/";
constexpr std::string_view kDisks = "disks/";
constexpr std::string_view kLives = "lives/";
constexpr std::string_view kPolicies = "policies/";
constexpr std::string_view kWishes = "wishes/";
constexpr std::string_view kMoves = "moves/";

bool IsAlphanumeric(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

std::string KeyOf(std::string_view cluster, std::string_view folder, std::string_view name) {
  GANNET_CHECK(IsClusterName(name), "no name of a group or a node");
  return ClusterPrefix(cluster).append(folder).append(name);
}

}  // namespace

std::optional<uint16_t> ParsePartition(std::string_view text) {
  uint16_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number >= kPartitions) return std::nullopt;
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  return number;
}

bool IsClusterName(std::string_view name) {
  return !name.empty() && name.size() <= kClusterNameBytesMax && IsAlphanumeric(name[0]) &&
         std::ranges::all_of(
             name, [](char c) { return IsAlphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

std::string WhatNamesAre(std::string_view of_what) {
  return absl::StrCat("the name of a ", std::string(of_what), " has 1 to ", kClusterNameBytesMax,
                      " letters, digits, '.', '_' and '-', and begins with a letter or a digit");
}

std::string ClusterPrefix(std::string_view cluster) {
  GANNET_CHECK(IsClusterName(cluster), "no name of a cluster");
  return absl::StrCat("/gannet/", std::string(cluster), "/");
}

std::string ConfigKey(std::string_view cluster) {
  return ClusterPrefix(cluster).append(kConfigName);
}

std::string GroupKey(std::string_view cluster, std::string_view group) {
  return KeyOf(cluster, kGroups, group);
}

std::string NodeKey(std::string_view cluster, std::string_view node) {
  return KeyOf(cluster, kNodes, node);
}

std::string PolicyKey(std::string_view cluster, std::string_view group) {
  return KeyOf(cluster, kPolicies, group);
}

std::string WishKey(std::string_view cluster, std::string_view group) {
  return KeyOf(cluster, kWishes, group);
}

std::string VersionKey(std::string_view cluster, std::string_view node) {
  return KeyOf(cluster, kVersions, node);
}

std::string RailsKey(std::string_view cluster, std::string_view node) {
  return KeyOf(cluster, kRailsFolder, node);
}

std::string DiskKey(std::string_view cluster, std::string_view node) {
  return KeyOf(cluster, kDisks, node);
}

std::string LifeKey(std::string_view cluster, std::string_view node) {
  return KeyOf(cluster, kLives, node);
}

std::string MoveKey(std::string_view cluster, uint16_t partition) {
  GANNET_CHECK(partition < kPartitions, "no partition");
  return absl::StrCat(ClusterPrefix(cluster), std::string(kMoves), partition);
}

std::optional<ClusterKey> ParseClusterKey(std::string_view cluster, std::string_view key) {
  using enum ClusterKey::Kind;
  const std::string prefix = ClusterPrefix(cluster);
  if (!key.starts_with(prefix)) return std::nullopt;
  key.remove_prefix(prefix.size());
  if (key == kConfigName) return ClusterKey{.kind = kConfig};
  for (const auto& [folder, kind] : {std::pair{kGroups, kGroup},
                                     {kNodes, kNode},
                                     {kVersions, kVersion},
                                     {kRailsFolder, kRails},
                                     {kDisks, kDisk},
                                     {kLives, kLife},
                                     {kPolicies, kPolicy},
                                     {kWishes, kWish}}) {
    if (!key.starts_with(folder)) continue;
    const std::string_view name = key.substr(folder.size());
    if (IsClusterName(name)) return ClusterKey{.kind = kind, .name = std::string(name)};
  }
  if (!key.starts_with(kMoves)) return std::nullopt;
  const std::optional<uint16_t> partition = ParsePartition(key.substr(kMoves.size()));
  if (!partition) return std::nullopt;
  return ClusterKey{.kind = kMove, .partition = *partition};
}

}  // namespace gannet
