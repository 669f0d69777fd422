#include "proxy/jobs/client_list.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet::proxy {
namespace {

void AppendLine(std::string* lines, uint64_t id, const ClientList::Entry& entry) {
  absl::StrAppend(lines, "id=", id, " addr=", entry.address, " name=", entry.name,
                  " age=", std::time(nullptr) - entry.since, " db=0 resp=", entry.resp3 ? 3 : 2,
                  "\n");
}

}  // namespace

void ClientList::Add(uint64_t id, std::string address) {
  const MutexLock lock(mutex_);
  entries_[id] = {.address = std::move(address), .since = std::time(nullptr)};
}

void ClientList::Remove(uint64_t id) {
  const MutexLock lock(mutex_);
  entries_.erase(id);
}

void ClientList::Change(uint64_t id, std::string_view name, bool resp3) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  found->second.name.assign(name);
  found->second.resp3 = resp3;
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
