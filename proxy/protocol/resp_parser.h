#ifndef GANNET_PROXY_PROTOCOL_RESP_PARSER_H_
#define GANNET_PROXY_PROTOCOL_RESP_PARSER_H_

#include <string_view>

#include "proxy/protocol/parsed_command.h"

namespace gannet::proxy {

// Takes the first command of Redis' protocol from `input`: an array of bulk strings, or a line of
// words ("inline"), which may be quoted. Pure: the same input gives the same answer. `command` is
// filled in if the outcome is kCommand. A command without words means nothing, and has no answer.
//
// Errors are lines as Redis sends them, without the leading '-'. An inline command POST or Host: is
// kBroken without an error, because then a web browser was made to talk to this port.
Parsed ParseResp(std::string_view input, ParsedCommand* command);

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_PROTOCOL_RESP_PARSER_H_
