#ifndef GANNET_TOOLS_KVCLI_RAIL_FIGURES_H_
#define GANNET_TOOLS_KVCLI_RAIL_FIGURES_H_

#include <gannet/client.h>
#include <gannet/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/kvcli/text.h"

namespace gannet::kvcli {

// What is shown of a server's rails, if it has several.

inline bool HasRails(const std::vector<RailInfo>& rails) { return rails.size() > 1; }
// Returns the rails of a server as soon as it told them and this client is connected by all that
// are up, or after some seconds. A client tries one after the other, each for a second at most.
std::vector<RailInfo> AwaitRails(Client& client, uint32_t server);
// "up"; "down": the server says so; "not reached": by this program.
std::string_view RailStateText(const RailInfo& rail);
// Returns the connections of all clients by all rails, to take a rail's share of.
uint64_t ConnectionsOf(const std::vector<RailInfo>& rails);
Json RailsJson(const std::vector<RailInfo>& rails);
// Returns a line for each.
std::string RailsText(const std::vector<RailInfo>& rails);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_RAIL_FIGURES_H_
