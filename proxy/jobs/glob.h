#ifndef GANNET_PROXY_JOBS_GLOB_H_
#define GANNET_PROXY_JOBS_GLOB_H_

#include <string_view>

namespace gannet::proxy {

// Returns whether the text matches a pattern of Redis' KEYS: * ? [a-c] [^a] and \ before a
// character that means itself. Bytes, not characters. Takes at most as many steps as the product of
// both lengths.
bool GlobMatches(std::string_view pattern, std::string_view text);

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_GLOB_H_
