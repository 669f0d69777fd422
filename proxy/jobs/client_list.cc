#include "proxy/jobs/client_list.h"

#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "proxy/jobs/job.h"

namespace gannet::proxy {
namespace {

void AppendLine(std::string* lines, uint64_t id, const ClientList::Entry& entry) {
  absl::StrAppend(lines, "id=", id, " addr=", entry.address, " name=", entry.name,
                  " age=", std::time(nullptr) - entry.since,
                  " db=", static_cast<int>(entry.database), " resp=", entry.resp3 ? 3 : 2, "\n");
}

}  // namespace

void ClientList::Add(uint64_t id, std::string address, int socket) {
  const MutexLock lock(mutex_);
  entries_[id] = {.address = std::move(address), .since = std::time(nullptr), .socket = socket};
}

// The thread that serves the connection sees the shut socket, and closes it.
size_t ClientList::End(const Filter& filter, uint64_t own, bool* with_own) {
  const MutexLock lock(mutex_);
  size_t count = 0;
  for (const auto& [id, entry] : entries_) {
    const bool fits = (filter.id == 0 || filter.id == id) && filter.skipped != id &&
                      (filter.address.empty() || filter.address == entry.address);
    if (!fits) continue;
    ++count;
    *with_own = *with_own || id == own;
    if (id != own) shutdown(entry.socket, SHUT_RDWR);
  }
  return count;
}

void ClientList::Remove(uint64_t id) {
  const MutexLock lock(mutex_);
  entries_.erase(id);
}

void ClientList::Change(const ClientState& client) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(client.id);
  if (found == entries_.end()) return;
  found->second.name = client.name;
  found->second.resp3 = client.resp3;
  found->second.database = client.database.number;
}

std::string ClientList::Lines() const {
  const MutexLock lock(mutex_);
  std::string lines;
  for (const auto& [id, entry] : entries_) AppendLine(&lines, id, entry);
  return lines;
}

std::string ClientList::Line(uint64_t id) const {
  const MutexLock lock(mutex_);
  std::string line;
  const auto found = entries_.find(id);
  if (found != entries_.end()) AppendLine(&line, id, found->second);
  return line;
}

}  // namespace gannet::proxy
