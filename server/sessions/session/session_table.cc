// The sessions of one worker, by their tokens. A session whose last connection went stays for the
// grace period, unless it never had a request or has ended. A table that is full forgets the
// session that is gone longest. Each beginning and end is told to the group's stream, if there is
// one, so that backups have the same sessions.

#include "server/sessions/session/session_table.h"

#include <algorithm>

#include "glog/logging.h"

namespace gannet {

uint64_t SessionTable::NewToken() {
  for (;;) {
    uint64_t token = options_.random->Next();
    token = token - token % options_.workers + options_.worker;
    // 0 means "a new session", so it is not a token. And the arithmetic above may have overflowed
    // at the very top.
    if (token != 0 && WorkerOf(token, options_.workers) == options_.worker &&
        !sessions_.contains(token)) {
      return token;
    }
  }
}

Session* SessionTable::Create(BootTime now, std::shared_ptr<const SessionKey> key) {
  if (sessions_.size() >= options_.sessions_max && !EvictOne()) return nullptr;
  const uint64_t token = NewToken();
  const uint32_t id = created_++ * options_.workers + options_.worker + 1;
  auto session = std::make_unique<Session>(id, token, options_.credits);
  session->key = std::move(key);
  if (options_.stream != nullptr) options_.stream->Began(*session);
  return Add(std::move(session), now);
}

// The ids go on behind those that were given, so that no two sessions have the same one.
bool SessionTable::Adopt(const SessionCopy& copy, BootTime now) {
  if (copy.token == 0 || WorkerOf(copy.token, options_.workers) != options_.worker ||
      copy.credits != options_.credits || sessions_.size() >= options_.sessions_max ||
      sessions_.contains(copy.token)) {
    return false;
  }
  created_ = std::max(created_, copy.id / options_.workers + 1);
  Add(std::make_unique<Session>(copy), now);
  return true;
}

Session* SessionTable::Add(std::unique_ptr<Session> session, BootTime now) {
  session->detached_at = now;
  session_bytes_ += session->MemoryBytes();
  const uint64_t token = session->token();
  return sessions_.emplace(token, std::move(session)).first->second.get();
}

void SessionTable::OnEnd(const Session& session) {
  session_bytes_ -= session.MemoryBytes();
  if (options_.stream != nullptr) options_.stream->Ended(session.token());
}

bool SessionTable::HasRoom() const {
  return sessions_.size() < options_.sessions_max ||
         std::any_of(sessions_.begin(), sessions_.end(),
                     [](const auto& entry) { return entry.second->connections == 0; });
}

Session* SessionTable::Find(uint64_t token) {
  auto it = sessions_.find(token);
  return it == sessions_.end() || it->second->ended ? nullptr : it->second.get();
}

void SessionTable::Detach(Session* session, BootTime now) {
  CHECK_GT(session->connections, 0u);
  if (--session->connections > 0) return;
  session->detached_at = now;
  // A request in progress is a write that waits for the disk. It is decided, so its answer will be
  // recorded here.
  if (session->IsKnown() && !session->ended) return;
  OnEnd(*session);
  sessions_.erase(session->token());
}

void SessionTable::Expire(BootTime now) {
  absl::erase_if(sessions_, [&](const auto& entry) {
    const Session& session = *entry.second;
    if (session.connections > 0 || now - session.detached_at < options_.grace_ns) return false;
    OnEnd(session);
    return true;
  });
}

BootTime SessionTable::next_expiry() const {
  BootTime next = BootTime::Never();
  for (const auto& [token, session] : sessions_) {
    if (session->connections == 0) next = std::min(next, session->detached_at + options_.grace_ns);
  }
  return next;
}

bool SessionTable::EvictOne() {
  auto oldest = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    if (it->second->connections > 0) continue;
    if (oldest == sessions_.end() || it->second->detached_at < oldest->second->detached_at) {
      oldest = it;
    }
  }
  if (oldest == sessions_.end()) return false;
  OnEnd(*oldest->second);
  sessions_.erase(oldest);
  return true;
}

}  // namespace gannet
