#ifndef GANNET_SERVER_SESSION_SESSION_TABLE_H_
#define GANNET_SERVER_SESSION_SESSION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "server/session/session.h"

namespace gannet {

// The sessions of one worker, by their secret token. A session lives while it has a connection and
// for a grace period after its last one went.
//
// Tokens are random and say which worker has the session (token % workers), so that whoever takes
// a connection request can route it without looking at any worker's table.
//
// Thread safety: the worker's thread only.
class SessionTable {
 public:
  struct Options {
    uint16_t credits = kCreditsDefault;
    int64_t grace_ns = 0;
    uint32_t worker = 0;
    uint32_t workers = 1;
    // Sessions without a connection make room for new ones beyond this, the longest gone first.
    size_t sessions_max = 4096;
    // A source of secrets; each call 64 unpredictable bits.
    std::function<uint64_t()> random;
  };

  explicit SessionTable(Options options) : options_(std::move(options)) {}

  // A session with no connection yet, gone since `now_ns`. Null: sessions_max of them are
  // connected.
  Session* Create(int64_t now_ns);
  // True if Create has room, or can make some.
  bool HasRoom() const;
  // Null: unknown, expired, or of an earlier incarnation.
  Session* Find(uint64_t token);

  void Attach(Session* session) { ++session->connections; }
  // A session that no client knows is dropped with its last connection.
  void Detach(Session* session, int64_t now_ns);

  // Drops the sessions whose grace is over. None of them has a request in progress.
  void Expire(int64_t now_ns);

  // When the next one's grace is over; the far future when all are connected.
  int64_t next_expiry_ns() const;

  size_t size() const { return sessions_.size(); }
  // By own accounting: the sessions and the table.
  size_t MemoryBytes() const {
    return session_bytes_ + sessions_.capacity() * (sizeof(*sessions_.begin()) + 1);
  }

  static uint32_t WorkerOf(uint64_t token, uint32_t workers) {
    return static_cast<uint32_t>(token % workers);
  }

 private:
  bool EvictOne();
  uint64_t NewToken();

  Options options_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Session>> sessions_;  // by token
  uint32_t created_ = 0;
  size_t session_bytes_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSION_SESSION_TABLE_H_
