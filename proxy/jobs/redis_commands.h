#ifndef GANNET_PROXY_JOBS_REDIS_COMMANDS_H_
#define GANNET_PROXY_JOBS_REDIS_COMMANDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/jobs/job.h"
#include "proxy/protocol/resp_reply.h"

namespace gannet::proxy {

// Looks at a command of Redis' protocol. Sets the job's first stage, its keys and its access. If
// the command needs nothing of the store, sets the reply instead.
void PrepareRedis(Job& job);

// Functions that the parts in other files define.
namespace redis {

inline RespReply Reply(Job& job) { return {&job.reply, job.resp3}; }
// Writes the error as the whole reply.
void Fail(Job& job, std::string_view error);
void Fail(Job& job, const Operation& operation);
// Returns the text of the error.
std::string ErrorOf(const Operation& operation);
void SyntaxError(Job& job);
std::string Upper(std::string_view word);
// Returns false, and replies, if the job's database cannot have one of the job's keys.
bool KeysFit(Job& job);
// The same. Then makes the names of the keys the keys that the store has for them.
bool TakeNames(Job& job);
// Returns the key that the store has for a name. Returns nullopt, and replies, if the database
// cannot have it.
std::optional<std::string_view> KeyIn(Job& job, Database database, std::string_view name);
// Parses the number of a database. Returns false, and replies, if there is no such one.
bool TakeDatabase(Job& job, std::string_view word, Database* database);

inline constexpr char kNoInteger[] = "ERR value is not an integer or out of range";
inline constexpr size_t kMsetNxKeysMax = 1024;

int64_t NowMs();  // since 1970
// The units of EX, PX, EXAT and PXAT.
struct Unit {
  bool is_seconds;
  bool is_absolute;
};
std::optional<Unit> UnitOf(std::string_view option);
// Parses a number as Redis does: 007 and -0 are none, because it would write them in another way.
bool ParseInteger(std::string_view word, int64_t* number);
// Returns how long from now, in ms, at most the store's longest time to live; it may be negative.
// Returns nullopt, and replies, if the word is no number or far too large. `forward`: also if it is
// not positive.
enum class Span : uint8_t { kAny, kForward };
std::optional<int64_t> MsFromNow(Job& job, std::string_view word, Unit unit, Span span);

// Keeps the command for EXEC.
void Queue(Job& job);

// Each prepares the commands that its name says.
void PrepareGet(Job& job);
void PrepareMget(Job& job);
void PrepareLook(Job& job);  // EXISTS, TOUCH, STRLEN, TYPE, TTL, PTTL, EXPIRETIME, PEXPIRETIME
void PrepareObject(Job& job);
void PrepareMemory(Job& job);
void PrepareDel(Job& job);
void PrepareMset(Job& job);
void PrepareMsetNx(Job& job);
void PrepareFlush(Job& job);
void FlushDatabase(Job& job);  // one of several
void PrepareGetRange(Job& job);
void PrepareSetRange(Job& job);
void PrepareIncrByFloat(Job& job);
void PrepareRename(Job& job);  // and RENAMENX
void PrepareCopy(Job& job);
void PrepareMove(Job& job);
void PrepareSwapDb(Job& job);
void PrepareKeys(Job& job);
void CountKeys(Job& job);  // of a database of several
void PrepareScan(Job& job);
void PrepareMulti(Job& job);
void PrepareExec(Job& job);
void PrepareDiscard(Job& job);
void PrepareWatch(Job& job);
void PrepareUnwatch(Job& job);
void PrepareEval(Job& job);
void PrepareEvalSha(Job& job);
void PrepareScript(Job& job);
void PrepareTime(Job& job);
void PrepareSet(Job& job);     // and SETNX, SETEX, PSETEX, GETSET
void PrepareExpire(Job& job);  // and PEXPIRE, EXPIREAT, PEXPIREAT
void PreparePersist(Job& job);
void PrepareGetDel(Job& job);
void PrepareGetEx(Job& job);
void PrepareAppend(Job& job);
void PrepareCount(Job& job);  // INCR, DECR, INCRBY, DECRBY
void PreparePing(Job& job);
void PrepareEcho(Job& job);
void PrepareHello(Job& job);
void PrepareClient(Job& job);
void PrepareCommand(Job& job);
void PrepareConfig(Job& job);
void PrepareSlowLog(Job& job);
void PrepareLatency(Job& job);
void PrepareSelect(Job& job);
void PrepareQuit(Job& job);
void PrepareReset(Job& job);
void PrepareAuth(Job& job);
void PrepareInfo(Job& job);
void PrepareDbSize(Job& job);

}  // namespace redis
}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_REDIS_COMMANDS_H_
