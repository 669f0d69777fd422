#include "common/base/server_list.h"

#include <algorithm>

namespace gannet {

bool IsGroup(std::string_view endpoint) {
  if (!endpoint.starts_with(kGroupPrefix)) return false;
  const std::string_view rest = endpoint.substr(kGroupPrefix.size());
  return rest.empty() || !std::ranges::all_of(rest, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> SplitServerList(std::string_view text) {
  std::vector<std::string> servers;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view first = text.substr(0, comma);
    if (IsGroup(first)) {
      servers.emplace_back(text);
      break;
    }
    if (!first.empty()) servers.emplace_back(first);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return servers;
}

}  // namespace gannet
