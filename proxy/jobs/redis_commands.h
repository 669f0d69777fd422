#ifndef GANNET_PROXY_JOBS_REDIS_COMMANDS_H_
#define GANNET_PROXY_JOBS_REDIS_COMMANDS_H_

#include <string>
#include <string_view>

#include "proxy/jobs/job.h"
#include "proxy/protocol/resp_reply.h"

namespace gannet::proxy {

// Looks at a command of Redis' protocol: sets the job's first stage, its keys and its access. Or
// sets the reply, if that needs nothing of the store.
void PrepareRedis(Job& job);

// Of the parts, in other files.
namespace redis {

inline RespReply Reply(Job& job) { return {&job.reply, job.resp3}; }
// Writes the error as the whole reply.
void Fail(Job& job, std::string_view error);
void Fail(Job& job, const Operation& operation);
void SyntaxError(Job& job);
std::string Upper(std::string_view word);

// Each prepares the commands of these names.
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
void PrepareSelect(Job& job);
void PrepareQuit(Job& job);
void PrepareReset(Job& job);
void PrepareAuth(Job& job);
void PrepareInfo(Job& job);
void PrepareDbSize(Job& job);

}  // namespace redis
}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_REDIS_COMMANDS_H_
