#include "tools/kvcli/discovery.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace gannet::kvcli {
namespace {

bool SameGroup(const ServerAnnouncement& a, const ServerAnnouncement& b) {
  return !a.cluster.empty() && a.cluster == b.cluster && a.group == b.group;
}

// A former primary may say so for some time after another one took over.
bool IsPrimary(const ServerAnnouncement& it, uint64_t epoch) {
  return it.primary && it.epoch == epoch;
}

}  // namespace

void Discovery::Add(const ServerAnnouncement& it) {
  const Who who(it.cluster, it.group, it.name, it.address);
  const auto known = servers_.find(who);
  if (known != servers_.end()) {
    known->second = it;
  } else if (servers_.size() < kServersMax) {
    servers_.emplace(who, it);
  }
}

std::vector<Discovery::Group> Discovery::Groups() const {
  std::vector<Group> groups;
  for (const auto& [who, it] : servers_) {  // those of a group are neighbours
    if (groups.empty() || !SameGroup(*groups.back().first, it)) groups.push_back({&it, {}});
    Group& group = groups.back();
    if (it.epoch > group.first->epoch) group.first = &it;
    group.members.push_back(&it);
  }
  return groups;
}

std::string EndpointOf(const std::vector<const ServerAnnouncement*>& members) {
  const ServerAnnouncement& first = *members.front();
  if (first.cluster.empty()) {
    return first.name.empty() ? first.address : absl::StrCat(first.name, "@", first.address);
  }
  return absl::StrCat(
      "cluster:", absl::StrJoin(members, ",", [](std::string* out, const ServerAnnouncement* it) {
        out->append(it->address);
      }));
}

std::string Discovery::Text() const {
  std::string text;
  for (const Group& group : Groups()) {
    const ServerAnnouncement& first = *group.first;
    const std::string endpoint = EndpointOf(group.members);
    if (first.cluster.empty()) {
      absl::StrAppend(&text, "server alone: --server=", endpoint, "\n");
      continue;
    }
    absl::StrAppend(&text, "cluster ", first.cluster, ", group ", first.group, ", epoch ",
                    first.epoch, ": --server=", endpoint, "\n");
    for (const ServerAnnouncement* it : group.members) {
      absl::StrAppendFormat(&text, "  %-12s %s%s\n", it->name, it->address,
                            IsPrimary(*it, first.epoch) ? "  primary" : "");
    }
  }
  return text;
}

Json Discovery::AsJson() const {
  Json all = Json::array();
  for (const Group& group : Groups()) {
    Json members = Json::array();
    for (const ServerAnnouncement* it : group.members) {
      members.push_back({{"name", it->name},
                         {"address", it->address},
                         {"epoch", it->epoch},
                         {"primary", IsPrimary(*it, group.first->epoch)}});
    }
    all.push_back({{"cluster", group.first->cluster},
                   {"group", group.first->group},
                   {"epoch", group.first->epoch},
                   {"endpoint", EndpointOf(group.members)},
                   {"members", members}});
  }
  return {{"servers", all}};
}

}  // namespace gannet::kvcli
