#ifndef GANNET_PROXY_PROTOCOL_MEMCACHED_PARSER_H_
#define GANNET_PROXY_PROTOCOL_MEMCACHED_PARSER_H_

#include <string_view>

#include "proxy/protocol/parsed_command.h"

namespace gannet::proxy {

// Takes the first command of memcached's text protocol, classic or meta, from `input`. Pure: the
// same input gives the same answer. `command` is filled in if the outcome is kCommand.
//
// The parser knows which commands are followed by a data block, and how long that is. Whoever
// executes the command checks the rest of the line. The parser refuses a data block that is too
// long for the store, or that does not end with CR LF, in memcached's words.
Parsed ParseMemcached(std::string_view input, ParsedCommand* command);

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_PROTOCOL_MEMCACHED_PARSER_H_
