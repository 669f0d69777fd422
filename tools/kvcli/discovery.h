#ifndef GANNET_TOOLS_KVCLI_DISCOVERY_H_
#define GANNET_TOOLS_KVCLI_DISCOVERY_H_

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/protocol/announce.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {

// The servers that announced themselves. Anybody may announce anything, so there is a limit, and
// nothing of it is used but to be shown.
class Discovery {
 public:
  static constexpr size_t kServersMax = 4096;

  // Keeps the newest that a server says of itself.
  void Add(const ServerAnnouncement& it);

  bool empty() const { return servers_.empty(); }
  size_t size() const { return servers_.size(); }
  // Returns them in groups, each with what to give to --server:
  //   cluster c, group g1, epoch 3: --server=cluster:10.0.0.1:7471,10.0.0.2:7471
  //     n1  10.0.0.1:7471  primary
  std::string Text() const;
  Json AsJson() const;

 private:
  // Cluster, group, name, address.
  using Who = std::tuple<std::string, std::string, std::string, std::string>;
  struct Group {
    const ServerAnnouncement* first;  // whose epoch is the highest
    std::vector<const ServerAnnouncement*> members;
  };

  std::vector<Group> Groups() const;

  std::map<Who, ServerAnnouncement> servers_;
};

// Returns what to give to --server for these members of a group, or this server alone.
std::string EndpointOf(const std::vector<const ServerAnnouncement*>& members);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_DISCOVERY_H_
