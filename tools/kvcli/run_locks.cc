// The verbs for locks: their own, and those that others hold.

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "tools/kvcli/answers.h"
#include "tools/kvcli/child.h"
#include "tools/kvcli/run_verbs.h"

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

// If another client holds the lock, and also if the server does not answer, the call ends as
// DeadlineExceeded. One more try tells the two apart.
absl::StatusOr<std::optional<Lock>> Acquire(Shell& shell, const Command& command) {
  const std::string& key = command.keys[0];
  const std::chrono::milliseconds wait = command.wait.value_or(shell.options().deadline);
  shell.BeginWait();
  const int64_t until_ns = MonotonicNs() + wait.count() * kNsPerMs;
  // Waits in slices, so that Interrupt works.
  constexpr std::chrono::milliseconds kSlice{100};
  for (int64_t left_ns = wait.count() * kNsPerMs; left_ns > 0; left_ns = until_ns - MonotonicNs()) {
    if (shell.interrupted()) break;
    const std::chrono::milliseconds left(std::max<int64_t>(1, left_ns / kNsPerMs));
    auto lock = shell.client().AcquireLock(key, std::min(left, kSlice), {.lease = command.lease});
    if (lock.ok()) return *std::move(lock);
    if (lock.status().code() != absl::StatusCode::kDeadlineExceeded) return lock.status();
  }
  return shell.client().TryLock(key, {}, {.lease = command.lease});
}

int HoldWhileRunning(Shell& shell, const Command& command, const Lock& lock) {
  FlushAnswers();
  const int code = RunChild(command.child);
  const absl::Status unlocked = shell.client().Unlock(lock);
  if (unlocked.ok()) return code;
  Complain(
      absl::StrCat("the lock was lost while the command ran: ", std::string(unlocked.message())));
  return code == 0 ? static_cast<int>(kExitError) : code;
}

int ShowUnlocked(Shell& shell, const std::string& key, bool was_held) {
  if (shell.options().json) {
    Json json = KeyJson(key);
    json["unlocked"] = was_held;
    shell.ShowJson(json);
  } else if (!was_held) {
    shell.SayUnlessQuiet(absl::StrCat("not held: ", Escaped(key)));
  }
  return was_held ? kExitDone : kExitNotFound;
}

int BreakLock(Shell& shell, const std::string& key) {
  shell.locks().erase(key);
  const auto broken = shell.client().BreakLock(key);
  if (!broken.ok()) return shell.Report(broken.status());
  return ShowUnlocked(shell, key, *broken);
}

}  // namespace

int RunLock(Shell& shell, const Command& command) {
  const std::string& key = command.keys[0];
  if (shell.locks().contains(key)) {
    const std::string text = "held by this prompt or script already";
    Complain(absl::StrCat(text, ": ", Escaped(key)));
    if (shell.options().json) shell.ShowJson(ErrorJson("Held", text));
    return kExitNotFound;
  }
  auto lock = Acquire(shell, command);
  if (!lock.ok()) return shell.Report(lock.status());
  if (!lock->has_value()) {
    shell.SayUnlessQuiet(absl::StrCat("another holds the lock of ", Escaped(key)));
    if (shell.options().json) shell.ShowJson(ErrorJson("Held", "another holds the lock"));
    return command.child.empty() ? kExitNotFound : kExitHeld;
  }
  if (!command.child.empty()) return HoldWhileRunning(shell, command, **lock);
  shell.locks()[key] = **std::move(lock);
  if (shell.options().json) {
    Json json = KeyJson(key);
    json["locked"] = true;
    shell.ShowJson(json);
  }
  return kExitDone;
}

int RunUnlock(Shell& shell, const Command& command) {
  if (command.force) return BreakLock(shell, command.keys[0]);
  const auto held = shell.locks().find(command.keys[0]);
  if (held == shell.locks().end()) return ShowUnlocked(shell, command.keys[0], false);
  const absl::Status status = shell.client().Unlock(held->second);
  shell.locks().erase(held);
  if (status.code() == absl::StatusCode::kAborted) return shell.ReportRefused(status);
  return status.ok() ? ShowUnlocked(shell, command.keys[0], true) : shell.Report(status);
}

int RunLocks(Shell& shell, const Command&) {
  const std::vector<ServerInfo> servers = shell.client().Info();
  for (uint32_t server = 0; server < servers.size(); ++server) {
    const auto locks = shell.client().Locks(server);
    if (!locks.ok()) return shell.Report(locks.status());
    for (const HeldLock& lock : *locks) {
      if (shell.options().json) {
        shell.ShowJson(LockJson(servers[server].endpoint, lock));
      } else {
        std::printf("%s\n", LockText(lock).c_str());
      }
    }
  }
  return kExitDone;
}

}  // namespace gannet::kvcli
