// Lua leaves a C function by longjmp if there is an error or no memory. So whatever calls Lua here
// has no objects on its stack that need their destructor: they are members of ScriptRunner.

#include "proxy/jobs/lua_script.h"

#include <openssl/sha.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <lua5.1/lua.hpp>
extern "C" {
#include <lua5.1/lua-cjson.h>
}
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proxy/protocol/parsed_command.h"

namespace gannet::proxy {
namespace lua {
namespace {

constexpr int kStepsBetweenChecks = 1000;
constexpr int kDepthMax = 100;  // of tables in a reply
constexpr char kChunk[] = "@user_script";

struct ScriptRunner {
  const ScriptCall* call = nullptr;
  ScriptHost* host = nullptr;
  RespReply* reply = nullptr;
  size_t reply_bytes = 0;
  size_t memory = 0;
  int64_t cpu_end_ms = 0;
  bool is_stopped = false;
  bool is_compiled = false;
  // Of the command that is called.
  std::string bytes;
  std::vector<size_t> ends;
  std::vector<std::string_view> words;
  std::string_view answer;
  std::string error;
};

int64_t CpuMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

void* Allocate(void* data, void* block, size_t old, size_t wanted) {
  auto& run = *static_cast<ScriptRunner*>(data);
  if (wanted > old && run.memory + (wanted - old) > kScriptMemoryMax) return nullptr;
  run.memory += wanted - old;
  if (wanted == 0) {
    std::free(block);
    return nullptr;
  }
  return std::realloc(block, wanted);
}

ScriptRunner& RunnerOf(lua_State* state) {
  void* data = nullptr;
  lua_getallocf(state, &data);
  return *static_cast<ScriptRunner*>(data);
}

// Once the time is over, it raises an error at each step, so that no pcall of the script can go on.
void CheckTime(lua_State* state, lua_Debug*) {
  const ScriptRunner& run = RunnerOf(state);
  if (!run.is_stopped && CpuMs() < run.cpu_end_ms) return;
  lua_sethook(state, CheckTime, LUA_MASKCOUNT, 1);
  luaL_error(state, "the script took more than %d ms", static_cast<int>(run.call->cpu_ms_max));
}

void SetText(lua_State* state, const char* name, std::string_view text) {
  lua_pushlstring(state, text.data(), text.size());
  lua_setfield(state, -2, name);
}

void PushTable(lua_State* state, const char* name, std::string_view text) {
  lua_newtable(state);
  SetText(state, name, text);
}

std::string_view TextAt(lua_State* state, int at) {
  size_t size = 0;
  const char* const text = lua_tolstring(state, at, &size);
  return {text, size};
}

// --- redis.call ---

// Takes the arguments as words. Returns false if one is no string and no number.
bool TakeWords(lua_State* state, ScriptRunner& run) {
  run.bytes.clear();
  run.ends.clear();
  const int count = lua_gettop(state);
  for (int i = 1; i <= count; ++i) {
    const int type = lua_type(state, i);
    if (type == LUA_TNUMBER) {
      char number[64];
      const int size = std::snprintf(number, sizeof(number), "%.17g", lua_tonumber(state, i));
      run.bytes.append(number, static_cast<size_t>(size));
    } else if (type == LUA_TSTRING) {
      run.bytes.append(TextAt(state, i));
    } else {
      return false;
    }
    run.ends.push_back(run.bytes.size());
  }
  run.words.clear();
  size_t begin = 0;
  for (const size_t end : run.ends) {
    run.words.push_back(std::string_view(run.bytes).substr(begin, end - begin));
    begin = end;
  }
  return true;
}

// Pushes the first reply of `rest`, as Redis' scripts see it.
void PushReply(lua_State* state, std::string_view* rest) {
  luaL_checkstack(state, 8, "the reply is too deep");
  const size_t end = rest->find("\r\n");
  const char mark = (*rest)[0];
  const std::string_view line = rest->substr(1, end - 1);
  rest->remove_prefix(end + 2);
  int64_t number = 0;
  switch (mark) {
    case '+':
      return PushTable(state, "ok", line);
    case '-':
      return PushTable(state, "err", line);
    case ':':
      ParseNumber(line, &number);
      return lua_pushnumber(state, static_cast<lua_Number>(number));
    default:
      break;
  }
  ParseNumber(line, &number);
  if (number < 0) return lua_pushboolean(state, 0);
  if (mark == '$') {
    lua_pushlstring(state, rest->data(), static_cast<size_t>(number));
    return rest->remove_prefix(static_cast<size_t>(number) + 2);
  }
  lua_createtable(state, static_cast<int>(number), 0);
  for (int i = 1; i <= number; ++i) {
    PushReply(state, rest);
    lua_rawseti(state, -2, i);
  }
}

void PushCallReply(lua_State* state, ScriptRunner& run) {
  if (lua_gettop(state) == 0) {
    return PushTable(state, "err",
                     "ERR Please specify at least one argument for this redis.call() call");
  }
  if (!TakeWords(state, run)) {
    return PushTable(state, "err",
                     "ERR Lua redis lib command arguments must be strings or integers");
  }
  lua_settop(state, 0);
  if (run.is_stopped || !run.host->Call(run.words, &run.answer)) {
    run.is_stopped = true;
    luaL_error(state, "stopped");
  }
  PushReply(state, &run.answer);
}

int Pcall(lua_State* state) {
  PushCallReply(state, RunnerOf(state));
  return 1;
}

int Call(lua_State* state) {
  PushCallReply(state, RunnerOf(state));
  if (!lua_istable(state, -1)) return 1;
  lua_getfield(state, -1, "err");
  const bool failed = !lua_isnil(state, -1);
  lua_pop(state, 1);
  return failed ? lua_error(state) : 1;
}

// --- the other functions of redis ---

int ErrorReply(lua_State* state) {
  if (lua_gettop(state) != 1 || lua_type(state, 1) != LUA_TSTRING) {
    PushTable(state, "err", "ERR wrong number or type of arguments");
    return 1;
  }
  std::string_view text = TextAt(state, 1);
  if (text.starts_with('-')) text.remove_prefix(1);
  // An error begins with a code.
  if (text.find(' ') == text.npos) {
    lua_pushfstring(state, "ERR %s", text.data());
    text = TextAt(state, -1);
  }
  PushTable(state, "err", text);
  return 1;
}

int StatusReply(lua_State* state) {
  if (lua_gettop(state) != 1 || lua_type(state, 1) != LUA_TSTRING) {
    PushTable(state, "err", "ERR wrong number or type of arguments");
  } else {
    PushTable(state, "ok", TextAt(state, 1));
  }
  return 1;
}

int Sha1(lua_State* state) {
  if (lua_gettop(state) != 1) return luaL_error(state, "wrong number of arguments");
  const std::string_view text = TextAt(state, 1);
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  char hex[2 * SHA_DIGEST_LENGTH + 1];
  for (size_t i = 0; i < digest.size(); ++i) std::snprintf(hex + 2 * i, 3, "%02x", digest[i]);
  lua_pushstring(state, hex);
  return 1;
}

int Nothing(lua_State*) { return 0; }

int True(lua_State* state) {
  lua_pushboolean(state, 1);
  return 1;
}

int SetResp(lua_State* state) {
  if (luaL_checkinteger(state, 1) == 2) return 0;
  return luaL_error(state, "scripts see replies of RESP2 only here");
}

// --- what a script finds ---

// Returns about how many places a pattern may try in a text: each repetition may end at each of
// them, and each `?` doubles them.
double PatternCost(std::string_view pattern, double text_bytes) {
  double cost = text_bytes;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '%') {
      ++i;
      if (i < pattern.size() && pattern[i] == 'b') cost *= text_bytes;
    } else if (c == '[') {
      i = std::min(pattern.find(']', i + 2), pattern.size());
    } else if (c == '*' || c == '+' || c == '-') {
      cost *= text_bytes;
    } else if (c == '?') {
      cost *= 2;
    }
  }
  return cost;
}

// Lua's patterns have no limit of their own. Refuses those that might take long.
int BoundedPattern(lua_State* state) {
  constexpr double kMost = 1e8;
  size_t text_bytes = 0;
  size_t pattern_bytes = 0;
  luaL_checklstring(state, 1, &text_bytes);
  const char* const pattern = luaL_checklstring(state, 2, &pattern_bytes);
  const bool is_plain = lua_isboolean(state, 4) && lua_toboolean(state, 4) != 0;
  const double cost =
      PatternCost({pattern, pattern_bytes}, std::max(static_cast<double>(text_bytes), 2.0));
  if (!is_plain && cost > kMost) {
    return luaL_error(state, "this pattern takes too long for a text of %d bytes",
                      static_cast<int>(text_bytes));
  }
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, lua_gettop(state) - 1, LUA_MULTRET);
  return lua_gettop(state);
}

// Adds to `bytes` about what cjson makes of the value on top, until there are too many.
void Weigh(lua_State* state, size_t* bytes, int depth) {
  constexpr size_t kOverhead = 32;
  constexpr int kCjsonDepthMax = 1000;
  *bytes += kOverhead + (lua_type(state, -1) == LUA_TSTRING ? 6 * lua_objlen(state, -1) : 0);
  if (depth == kCjsonDepthMax) *bytes = kScriptMemoryMax;
  if (!lua_istable(state, -1) || *bytes >= kScriptMemoryMax) return;
  luaL_checkstack(state, 4, "the table is too deep");
  lua_pushnil(state);
  while (lua_next(state, -2) != 0) {
    Weigh(state, bytes, depth + 1);
    lua_pop(state, 1);
    *bytes += kOverhead + (lua_type(state, -1) == LUA_TSTRING ? 6 * lua_objlen(state, -1) : 0);
    if (*bytes >= kScriptMemoryMax) return lua_pop(state, 1);
  }
}

// cjson's buffer is not Lua's memory, and a table may be in others many times.
int BoundedEncode(lua_State* state) {
  size_t bytes = 0;
  lua_settop(state, 1);
  Weigh(state, &bytes, 0);
  lua_settop(state, 1);
  if (bytes >= kScriptMemoryMax) return luaL_error(state, "the text of the table is too long");
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, 1, 1);
  return 1;
}

void OpenCjson(lua_State* state) {
  lua_pushcfunction(state, luaopen_cjson);
  lua_call(state, 0, 1);
  lua_getfield(state, -1, "encode");
  lua_pushcclosure(state, BoundedEncode, 1);
  lua_setfield(state, -2, "encode");
  for (const char* name :
       {"new", "encode_max_depth", "encode_sparse_array", "encode_keep_buffer"}) {
    lua_pushnil(state);
    lua_setfield(state, -2, name);
  }
  lua_setglobal(state, "cjson");
}

int NoSuchGlobal(lua_State* state) {
  return luaL_error(state, "Script attempted to access nonexistent global variable '%s'",
                    luaL_optstring(state, 2, "?"));
}
int NoNewGlobal(lua_State* state) {
  return luaL_error(state, "Attempt to modify a readonly table");
}

void Open(lua_State* state, lua_CFunction library) {
  lua_pushcfunction(state, library);
  lua_call(state, 0, 0);
}

void OpenLibraries(lua_State* state) {
  for (const lua_CFunction library : {luaopen_base, luaopen_table, luaopen_string, luaopen_math}) {
    Open(state, library);
  }
  // What loads code might load broken bytecode. newproxy makes finalizers, which have no time
  // limit.
  for (const char* name : {"dofile", "loadfile", "load", "loadstring", "require", "module",
                           "newproxy", "print", "coroutine", "collectgarbage"}) {
    lua_pushnil(state);
    lua_setglobal(state, name);
  }
  lua_getglobal(state, "string");
  for (const char* name : {"find", "match", "gmatch", "gsub"}) {
    lua_getfield(state, -1, name);
    lua_pushcclosure(state, BoundedPattern, 1);
    lua_setfield(state, -2, name);
  }
  lua_pop(state, 1);
}

void OpenRedis(lua_State* state) {
  constexpr luaL_Reg kFunctions[] = {{"call", Call},
                                     {"pcall", Pcall},
                                     {"error_reply", ErrorReply},
                                     {"status_reply", StatusReply},
                                     {"sha1hex", Sha1},
                                     {"log", Nothing},
                                     {"setresp", SetResp},
                                     {"set_repl", Nothing},
                                     {"replicate_commands", True}};
  lua_newtable(state);
  for (const luaL_Reg& function : kFunctions) {
    lua_pushcfunction(state, function.func);
    lua_setfield(state, -2, function.name);
  }
  constexpr std::pair<const char*, int> kNumbers[] = {
      {"LOG_DEBUG", 0},   {"LOG_VERBOSE", 1},  {"LOG_NOTICE", 2},
      {"LOG_WARNING", 3}, {"REPL_NONE", 0},    {"REPL_AOF", 1},
      {"REPL_SLAVE", 2},  {"REPL_REPLICA", 2}, {"REPL_ALL", 3}};
  for (const auto& [name, number] : kNumbers) {
    lua_pushinteger(state, number);
    lua_setfield(state, -2, name);
  }
  lua_setglobal(state, "redis");
}

void SetList(lua_State* state, const char* name, std::span<const std::string_view> texts) {
  lua_createtable(state, static_cast<int>(texts.size()), 0);
  for (size_t i = 0; i < texts.size(); ++i) {
    lua_pushlstring(state, texts[i].data(), texts[i].size());
    lua_rawseti(state, -2, static_cast<int>(i + 1));
  }
  lua_setglobal(state, name);
}

void CloseGlobals(lua_State* state) {
  lua_newtable(state);
  lua_pushcfunction(state, NoSuchGlobal);
  lua_setfield(state, -2, "__index");
  lua_pushcfunction(state, NoNewGlobal);
  lua_setfield(state, -2, "__newindex");
  lua_setmetatable(state, LUA_GLOBALSINDEX);
}

// --- the reply ---

void ReplyWith(lua_State* state, ScriptRunner& run, int depth);

// Returns the text as one line. It is valid until the next call.
const std::string& OneLine(ScriptRunner& run, std::string_view text) {
  run.error.assign(text);
  std::replace_if(
      run.error.begin(), run.error.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return run.error;
}

void ReplyError(ScriptRunner& run, std::string_view text) { run.reply->Error(OneLine(run, text)); }

// Replies with the field of the table on top, if that is a text. Leaves the table alone on top.
bool ReplyField(lua_State* state, ScriptRunner& run, const char* name, bool is_error) {
  lua_pushstring(state, name);
  lua_rawget(state, -2);
  const bool is_text = lua_type(state, -1) == LUA_TSTRING;
  if (is_text && is_error) ReplyError(run, TextAt(state, -1));
  if (is_text && !is_error) run.reply->Simple(OneLine(run, TextAt(state, -1)));
  lua_pop(state, 1);
  return is_text;
}

void ReplyTable(lua_State* state, ScriptRunner& run, int depth) {
  if (ReplyField(state, run, "err", true) || ReplyField(state, run, "ok", false)) return;
  if (depth == kDepthMax) return run.reply->Error("ERR reached lua stack limit");
  int count = 0;
  for (;; ++count) {
    lua_rawgeti(state, -1, count + 1);
    const bool is_end = lua_isnil(state, -1);
    lua_pop(state, 1);
    if (is_end) break;
  }
  run.reply->Array(static_cast<size_t>(count));
  for (int i = 1; i <= count; ++i) {
    lua_rawgeti(state, -1, i);
    ReplyWith(state, run, depth + 1);
    lua_pop(state, 1);
  }
}

int64_t Truncated(lua_Number number) {
  constexpr lua_Number kLimit = 9223372036854775808.0;
  if (std::isnan(number) || number < -kLimit || number >= kLimit) return INT64_MIN;
  return static_cast<int64_t>(number);
}

// Replies with the value on top.
void ReplyWith(lua_State* state, ScriptRunner& run, int depth) {
  luaL_checkstack(state, 4, "the reply is too deep");
  constexpr size_t kOverhead = 32;
  run.reply_bytes += kOverhead + (lua_type(state, -1) == LUA_TSTRING ? lua_objlen(state, -1) : 0);
  if (run.reply_bytes > kScriptReplyMax) luaL_error(state, "the reply is too long");
  switch (lua_type(state, -1)) {
    case LUA_TSTRING:
      return run.reply->Bulk(TextAt(state, -1));
    case LUA_TBOOLEAN:
      return lua_toboolean(state, -1) != 0 ? run.reply->Integer(1) : run.reply->Null();
    case LUA_TNUMBER:
      return run.reply->Integer(Truncated(lua_tonumber(state, -1)));
    case LUA_TTABLE:
      return ReplyTable(state, run, depth);
    default:
      return run.reply->Null();
  }
}

// --- the run ---

// Makes a table of an error that was raised, with the place in the script.
int MakeError(lua_State* state) {
  lua_Debug place{};
  bool has_place = lua_getstack(state, 1, &place) != 0 && lua_getinfo(state, "Sl", &place) != 0;
  if (has_place && std::strcmp(place.what, "C") == 0) {
    has_place = lua_getstack(state, 2, &place) != 0 && lua_getinfo(state, "Sl", &place) != 0;
  }
  if (!lua_istable(state, 1)) {
    const char* const text = lua_tostring(state, 1);
    lua_pushfstring(state, "ERR %s", text == nullptr ? "(an error that is no text)" : text);
    PushTable(state, "err", TextAt(state, -1));
    lua_replace(state, 1);
  }
  lua_settop(state, 1);
  if (!has_place) return 1;
  lua_pushinteger(state, place.currentline);
  lua_setfield(state, 1, "line");
  return 1;
}

// Replies with the error on top.
void ReplyRaised(lua_State* state, ScriptRunner& run) {
  if (!lua_istable(state, -1)) return ReplyError(run, "ERR not enough memory for the script");
  lua_getfield(state, -1, "err");
  lua_getfield(state, -2, "line");
  const char* const text = lua_type(state, -2) == LUA_TSTRING ? lua_tostring(state, -2) : nullptr;
  const char* const what = text == nullptr ? "ERR unknown error" : text;
  lua_pushfstring(state, "%s script: %s, on %s:%d.", what, run.call->sha1.data(), kChunk,
                  static_cast<int>(lua_tointeger(state, -1)));
  ReplyError(run, TextAt(state, -1));
}

// Pushes the script as a function, or an error. Returns whether it is a script.
bool Compile(lua_State* state, std::string_view text) {
  // Bytecode is not checked by Lua.
  if (text.starts_with(LUA_SIGNATURE[0])) {
    lua_pushstring(state, "bytecode is refused");
    return false;
  }
  return luaL_loadbuffer(state, text.data(), text.size(), kChunk) == 0;
}

int RunIt(lua_State* state) {
  ScriptRunner& run = RunnerOf(state);
  OpenLibraries(state);
  OpenRedis(state);
  if (run.call->text.find("cjson") != run.call->text.npos) OpenCjson(state);
  SetList(state, "KEYS", run.call->keys);
  SetList(state, "ARGV", run.call->arguments);
  CloseGlobals(state);
  lua_pushcfunction(state, MakeError);
  if (!Compile(state, run.call->text)) {
    lua_pushfstring(state, "ERR Error compiling script (new function): %s",
                    lua_tostring(state, -1));
    ReplyError(run, TextAt(state, -1));
    return 0;
  }
  run.is_compiled = true;
  lua_sethook(state, CheckTime, LUA_MASKCOUNT, kStepsBetweenChecks);
  const int error = lua_pcall(state, 0, 1, -2);
  lua_sethook(state, nullptr, 0, 0);
  error == 0 ? ReplyWith(state, run, 0) : ReplyRaised(state, run);
  return 0;
}

int CompileIt(lua_State* state) {
  ScriptRunner& run = RunnerOf(state);
  run.is_compiled = Compile(state, run.call->text);
  if (!run.is_compiled) {
    run.error.assign("ERR Error compiling script (new function): ").append(TextAt(state, -1));
  }
  return 0;
}

// Returns false if there was no memory.
bool Protected(ScriptRunner& run, lua_CFunction function) {
  lua_State* const state = lua_newstate(Allocate, &run);
  if (state == nullptr) return false;
  const bool done = lua_cpcall(state, function, nullptr) == 0;
  lua_close(state);
  return done;
}

}  // namespace
}  // namespace lua

ScriptEnd RunScript(const ScriptCall& call, ScriptHost& host, std::string* out, bool resp3) {
  RespReply reply(out, resp3);
  lua::ScriptRunner run{
      .call = &call, .host = &host, .reply = &reply, .cpu_end_ms = lua::CpuMs() + call.cpu_ms_max};
  if (!lua::Protected(run, lua::RunIt)) {
    out->clear();
    reply.Error("ERR the script needs more memory than it may have, or its reply is too long");
  }
  if (run.is_stopped) return ScriptEnd::kStopped;
  return run.is_compiled ? ScriptEnd::kReplied : ScriptEnd::kNotCompiled;
}

std::optional<std::string> ScriptError(std::string_view text) {
  const ScriptCall call{.text = text};
  lua::ScriptRunner run{.call = &call};
  if (!lua::Protected(run, lua::CompileIt)) return "ERR not enough memory for the script";
  if (run.is_compiled) return {};
  std::replace(run.error.begin(), run.error.end(), '\n', ' ');
  return run.error;
}

std::string Sha1Hex(std::string_view text) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

}  // namespace gannet::proxy
