#ifndef GANNET_PROXY_JOBS_LUA_SCRIPT_H_
#define GANNET_PROXY_JOBS_LUA_SCRIPT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/protocol/resp_reply.h"

namespace gannet::proxy {

// What a script can do outside of itself.
class ScriptHost {
 public:
  virtual ~ScriptHost() = default;
  // Runs a command of redis.call. Sets the reply, in RESP2; it is valid until the next call.
  // Returns false if the script cannot go on.
  virtual bool Call(std::span<const std::string_view> words, std::string_view* reply) = 0;
};

// A script, and what it is called with.
struct ScriptCall {
  std::string_view text;
  std::string_view sha1;
  std::span<const std::string_view> keys;
  std::span<const std::string_view> arguments;
  int64_t cpu_ms_max = 0;
};

// Limits of one run. It runs on the thread that serves connections.
inline constexpr size_t kScriptTextMax = 1 << 20;
inline constexpr size_t kScriptMemoryMax = 32 << 20;
inline constexpr size_t kScriptReplyMax = 64 << 20;

// Runs a script of Redis 7, in a Lua 5.1 of its own that it cannot leave: no files, no processes,
// no other scripts' globals. There are base, math, string and table without what loads code; cjson;
// and redis with call, pcall, error_reply, status_reply, sha1hex and log.
//
// Writes the script's reply, which may be an error. kNotCompiled: the text is no script, and the
// reply says why. kStopped: the host stopped it, and the reply is not to be used.
enum class ScriptEnd : uint8_t { kReplied, kNotCompiled, kStopped };
ScriptEnd RunScript(const ScriptCall& call, ScriptHost& host, std::string* reply, bool resp3);

// Returns the error of Redis if the text is no script.
std::optional<std::string> ScriptError(std::string_view text);

// Returns the name that Redis gives to a script.
std::string Sha1Hex(std::string_view text);

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_LUA_SCRIPT_H_
