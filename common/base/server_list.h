#ifndef GANNET_COMMON_BASE_SERVER_LIST_H_
#define GANNET_COMMON_BASE_SERVER_LIST_H_

#include <string>
#include <string_view>
#include <vector>

namespace gannet {

// How an endpoint begins that lists the members of a group: "cluster:HOST:PORT,HOST:PORT".
inline constexpr std::string_view kGroupPrefix = "cluster:";

// Returns whether the endpoint is a group. "cluster:7471" is a host called "cluster", and its port.
bool IsGroup(std::string_view endpoint);

// Splits a list of servers at its commas, as users write it for a program. Drops empty ones.
// Members of a group are separated by commas, too. So a group takes all of the list that follows
// it.
std::vector<std::string> SplitServerList(std::string_view text);

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_SERVER_LIST_H_
