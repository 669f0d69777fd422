#ifndef GANNET_PROXY_JOBS_MEMCACHED_COMMANDS_H_
#define GANNET_PROXY_JOBS_MEMCACHED_COMMANDS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/jobs/job.h"

namespace gannet::proxy {

// Looks at a command of memcached's text protocol. Sets the job's first stage, its keys and its
// access. If the command needs nothing of the store, sets the reply instead.
void PrepareMemcached(Job& job);
// Does so for a command of memcached's binary protocol.
void PrepareMemcachedBinary(Job& job);

// memcached's times to live.
struct Lifetime {
  std::chrono::milliseconds ttl{0};  // 0: for ever
  bool over = false;                 // the item is expired at once
};
// 0 is for ever, a negative number is over at once, up to 30 days are seconds from now, and more
// are seconds since 1970.
Lifetime LifetimeOf(int64_t exptime, int64_t now_seconds);
// Returns nullopt if the word is no number.
std::optional<Lifetime> ParseExptime(std::string_view word, int64_t now_seconds);

// Functions that the parts in other files define.
namespace memcached {

inline constexpr std::string_view kBadLine = "CLIENT_ERROR bad command line format\r\n";
inline constexpr std::string_view kError = "ERROR\r\n";

// How a write ended.
enum class Ending : uint8_t { kStored, kNotStored, kExists, kNotFound, kDeleted, kTouched };
// Writes the reply to a write, in the words of the classic or of the meta commands.
void Conclude(Job& job, Ending ending);
// Writes SERVER_ERROR as the whole reply.
void Fail(Job& job, const Operation& operation);

bool KeyFits(const Job& job, std::string_view key);
// The job's one key.
void UseKey(Job& job, std::string_view key, Access access);
std::optional<Lifetime> Exptime(std::string_view word);

inline void Ignore(Job&) {}  // the last stage of a job without a reply

// Stages that classic and meta commands share. They use the job's first key, its data and its
// scratch.
void Store(Job& job);   // a Put with the conditions of scratch.put
void Extend(Job& job);  // append, prepend
void Remove(Job& job);
void Count(Job& job);  // incr, decr; ends in CountDone
void CountDone(Job& job, std::string_view number, const ItemInfo& info);

bool PrepareMeta(Job& job);  // returns false if the command is none of these
void ConcludeMeta(Job& job, Ending ending);
void CountDoneMeta(Job& job, std::string_view number, const ItemInfo& info);
void PrepareStats(Job& job);

// How jobs of the binary protocol end.
namespace binary {
void Prepare(Job& job);
void Conclude(Job& job, Ending ending);
void Fail(Job& job, const Operation& operation);
void CountDone(Job& job, std::string_view number, const ItemInfo& info);
void RefuseWrite(Job& job, bool is_too_large);  // otherwise it is no number
void MakeStatsFrames(Job& job);                 // of the lines in the reply
}  // namespace binary

}  // namespace memcached
}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_MEMCACHED_COMMANDS_H_
