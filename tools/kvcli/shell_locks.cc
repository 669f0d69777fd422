// Shell's commands for locks that others hold.

#include <cstdio>
#include <string>

#include "absl/strings/str_format.h"
#include "tools/kvcli/shell.h"

namespace gannet::kvcli {
namespace {

Json LockJson(const std::string& endpoint, const HeldLock& lock) {
  Json json = {{"endpoint", endpoint},
               {"index", lock.index},
               {"word", absl::StrFormat("%016x", lock.word)},
               {"session_id", lock.session_id},
               {"holder", lock.holder}};
  if (lock.lease.count() > 0) json["lease_ms"] = lock.lease.count();
  return json;
}

std::string LockText(const HeldLock& lock) {
  std::string text = absl::StrFormat("lock %d word %016x held by %s", lock.index, lock.word,
                                     lock.holder.empty() ? "nobody" : lock.holder);
  if (lock.session_id != 0) absl::StrAppendFormat(&text, " (session %d)", lock.session_id);
  if (lock.lease.count() > 0) absl::StrAppendFormat(&text, ", lease %d ms", lock.lease.count());
  return text;
}

}  // namespace

int Shell::Locks(const Command&) {
  const std::vector<ServerInfo> servers = client_.Info();
  for (uint32_t server = 0; server < servers.size(); ++server) {
    const auto locks = client_.Locks(server);
    if (!locks.ok()) return Report(locks.status());
    for (const HeldLock& lock : *locks) {
      if (options_.json) {
        ShowJson(LockJson(servers[server].endpoint, lock));
      } else {
        std::printf("%s\n", LockText(lock).c_str());
      }
    }
  }
  return kExitDone;
}

int Shell::BreakLock(const std::string& key) {
  locks_.erase(key);
  const auto broken = client_.BreakLock(key);
  if (!broken.ok()) return Report(broken.status());
  return ShowUnlocked(key, *broken);
}

int Shell::ShowUnlocked(const std::string& key, bool was_held) {
  if (options_.json) {
    Json json = KeyJson(key);
    json["unlocked"] = was_held;
    ShowJson(json);
  } else if (!was_held) {
    SayUnlessQuiet(absl::StrCat("not held: ", Escaped(key)));
  }
  return was_held ? kExitDone : kExitNotFound;
}

}  // namespace gannet::kvcli
