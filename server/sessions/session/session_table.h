#ifndef GANNET_SERVER_SESSIONS_SESSION_SESSION_TABLE_H_
#define GANNET_SERVER_SESSIONS_SESSION_SESSION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "common/base/boot_time.h"
#include "common/base/random_source.h"
#include "server/sessions/session/session.h"
#include "server/sessions/session/session_copies.h"
#include "server/sessions/session/session_stream.h"

namespace gannet {

// The sessions of one worker, by their secret token. A session lives while it has a connection, and
// for a grace period after its last one went.
//
// Tokens are random, and token % workers is the worker that has the session. So a connection
// request can be routed without looking at any worker's table.
//
// Thread safety: the worker's thread only.
class SessionTable {
 public:
  struct Options {
    uint16_t credits = kCreditsDefault;
    int64_t grace_ns = 0;
    uint32_t worker = 0;
    uint32_t workers = 1;
    // If there are more sessions than this, new ones replace those without a connection, the
    // longest gone first.
    size_t sessions_max = 4096;
    RandomSource* random = nullptr;   // of secrets; outlives the table
    SessionStream* stream = nullptr;  // is told of all sessions; null: there is no group
  };

  explicit SessionTable(Options options) : options_(std::move(options)) {}

  // Makes a session that has no connection yet and counts as gone since `now`. Returns null if
  // sessions_max sessions are connected.
  Session* Create(BootTime now, std::shared_ptr<const SessionKey> key = nullptr);
  // Takes a session of the former primary over. It has no connection, and counts as gone since
  // `now`. Returns false if it cannot be served here: another worker's, one with other credits,
  // or one too many. Then its client begins anew.
  bool Adopt(const SessionCopy& copy, BootTime now);
  // Returns true if Create has room or can make room.
  bool HasRoom() const;
  // Returns null if the session is unknown, expired, ended, or of an earlier incarnation.
  Session* Find(uint64_t token);

  void Attach(Session* session) { ++session->connections; }
  // Drops the session with its last connection if it ended, or its client cannot know it.
  void Detach(Session* session, BootTime now);

  // Drops sessions whose grace period is over. None of them has a request in progress.
  void Expire(BootTime now);

  // Returns when the next grace period is over, or BootTime::Never() if all sessions are connected.
  BootTime next_expiry() const;

  size_t size() const { return sessions_.size(); }
  // Bytes of the sessions and of the table.
  size_t MemoryBytes() const {
    return session_bytes_ + sessions_.capacity() * (sizeof(*sessions_.begin()) + 1);
  }

  static uint32_t WorkerOf(uint64_t token, uint32_t workers) {
    return static_cast<uint32_t>(token % workers);
  }

 private:
  bool EvictOne();
  Session* Add(std::unique_ptr<Session> session, BootTime now);
  // The session is about to be erased.
  void OnEnd(const Session& session);
  uint64_t NewToken();

  Options options_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Session>> sessions_;  // by token
  uint32_t created_ = 0;
  size_t session_bytes_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_SESSION_SESSION_TABLE_H_
