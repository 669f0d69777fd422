#include "tools/kvcli/shell.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "tools/kvcli/answers.h"
#include "tools/kvcli/child.h"
#include "tools/kvcli/gen_key.h"
#include "tools/kvcli/run_cluster.h"
#include "tools/kvcli/text.h"
#include "tools/kvcli/verbs.h"

namespace gannet::kvcli {
namespace {

void Complain(std::string_view text) {
  std::fprintf(stderr, "kvcli: %.*s\n", static_cast<int>(text.size()), text.data());
}

// Stops behind the longest value, so that an endless input is refused as too long.
std::string ReadStdin() {
  std::string bytes;
  char block[65536];
  while (bytes.size() <= kValueBytesMax) {
    const size_t n = std::fread(block, 1, sizeof(block), stdin);
    if (n == 0) break;
    bytes.append(block, n);
  }
  return bytes;
}

}  // namespace

Shell::~Shell() {
  for (const auto& [key, lock] : locks_) {
    const absl::Status status = client_.Unlock(lock);
    if (!status.ok())
      Complain(absl::StrCat("unlock ", Escaped(key), ": ", std::string(status.message())));
  }
}

int Shell::Execute(const Command& command) {
  struct Handler {
    Verb verb;
    int (Shell::*run)(const Command&);
  };
  static constexpr Handler kHandlers[] = {
      {Verb::kPut, &Shell::Put},
      {Verb::kGet, &Shell::Get},
      {Verb::kMultiGet, &Shell::MultiGet},
      {Verb::kExists, &Shell::Exists},
      {Verb::kTtl, &Shell::Ttl},
      {Verb::kDelete, &Shell::Delete},
      {Verb::kCompareAndSet, &Shell::Put},
      {Verb::kMultiPut, &Shell::MultiPut},
      {Verb::kAppend, &Shell::Append},
      {Verb::kPrepend, &Shell::Append},
      {Verb::kIncr, &Shell::Count},
      {Verb::kDecr, &Shell::Count},
      {Verb::kTouch, &Shell::Touch},
      {Verb::kGetAndTouch, &Shell::GetAndTouch},
      {Verb::kFlush, &Shell::Flush},
      {Verb::kLock, &Shell::LockKey},
      {Verb::kUnlock, &Shell::Unlock},
      {Verb::kLocks, &Shell::Locks},
      {Verb::kSnapshot, &Shell::Snapshot},
      {Verb::kStats, &Shell::Stats},
      {Verb::kInfo, &Shell::Info},
      {Verb::kPing, &Shell::Ping},
      {Verb::kClients, &Shell::Clients},
      {Verb::kSlowLog, &Shell::SlowLog},
      {Verb::kScan, &Shell::Scan},
      {Verb::kBigKeys, &Shell::BigKeys},
      {Verb::kHotKeys, &Shell::HotKeys},
      {Verb::kMemory, &Shell::Memory},
      {Verb::kWatch, &Shell::Watch},
      {Verb::kTop, &Shell::Top},
      {Verb::kLatency, &Shell::Latency},
      {Verb::kDoctor, &Shell::RefuseHere},
      {Verb::kCluster, &Shell::RunClusterCommand},
      {Verb::kDiscover, &Shell::RefuseHere},
      {Verb::kUpgradeCheck, &Shell::RefuseHere},
      {Verb::kGenKey, &Shell::GenKey},
      {Verb::kHelp, &Shell::Help},
      {Verb::kQuit, &Shell::Quit},
  };
  static_assert(std::ranges::all_of(kHandlers, [verb = 0](const Handler& handler) mutable {
    return static_cast<int>(handler.verb) == verb++;
  }));
  static_assert(std::size(kHandlers) == static_cast<size_t>(Verb::kQuit) + 1);
  const Handler& handler = kHandlers[static_cast<size_t>(command.verb)];
  const int code = (this->*handler.run)(command);
  FlushAnswers();
  return code;
}

int Shell::GetAndTouch(const Command& command) {
  return ShowGet(command, client_.GetAndTouch(command.keys[0], command.ttl));
}

int Shell::RefuseHere(const Command& command) {
  return ReportUsage(absl::InvalidArgumentError(
      absl::StrCat(RowOf(command.verb).name, " works from the command line only")));
}

int Shell::RunClusterCommand(const Command& command) {
  return RunCluster(command, {.connect = options_.connect, .device = absl::OkStatus()},
                    options_.json);
}

int Shell::GenKey(const Command& command) {
  Say(KeyText(command, options_.json));
  return kExitDone;
}

int Shell::Quit(const Command&) { return kExitDone; }

void Shell::ShowJson(const Json& json) { Say(Dump(json) + "\n"); }

int Shell::ReportUsage(const absl::Status& status) {
  Complain(std::string(status.message()));
  if (options_.json) ShowJson(ErrorJson("Usage", std::string(status.message())));
  FlushAnswers();
  return kExitUsage;
}

int Shell::Report(const absl::Status& status) {
  const std::string name = absl::StatusCodeToString(status.code());
  const std::string message(status.message());
  Complain(absl::StrCat(name, ": ", message));
  if (options_.json) ShowJson(ErrorJson(name, message));
  return status.code() == absl::StatusCode::kInvalidArgument ? kExitUsage : kExitError;
}

int Shell::ReportOfKey(const std::string& key, const absl::Status& status,
                       std::set<std::string>& told) {
  const std::string name = absl::StatusCodeToString(status.code());
  const std::string message(status.message());
  if (told.insert(message).second) Complain(absl::StrCat(name, ": ", message));
  if (options_.json) {
    Json json = KeyJson(key);
    json.update(ErrorJson(name, message));
    ShowJson(json);
  } else {
    Say("(error)\n");
  }
  return status.code() == absl::StatusCode::kInvalidArgument ? kExitUsage : kExitError;
}

int Shell::ReportRefused(const absl::Status& status) {
  const std::string name = absl::StatusCodeToString(status.code());
  const std::string message(status.message());
  SayUnlessQuiet(absl::StrCat(name, ": ", message));
  if (options_.json) ShowJson(ErrorJson(name, message));
  return kExitNotFound;
}

void Shell::SayUnlessQuiet(std::string_view text) const {
  if (!options_.quiet) Complain(text);
}

int Shell::NotFound(std::string_view key) {
  if (options_.json) {
    Json json = KeyJson(key);
    json["found"] = false;
    ShowJson(json);
  } else {
    SayUnlessQuiet(absl::StrCat("not found: ", Escaped(key)));
  }
  return kExitNotFound;
}

int Shell::Put(const Command& command) {
  const std::string& key = command.keys[0];
  if (command.value_from_stdin && !options_.one_shot) {
    return ReportUsage(absl::InvalidArgumentError(
        "- reads the value from stdin, but here stdin has the commands"));
  }
  if (!command.file.empty()) return PutFile(command);
  PutOptions options{.flags = command.flags,
                     .ttl = command.ttl,
                     .only_if_absent = command.if_absent,
                     .only_if_present = command.if_present,
                     .only_if_version = command.if_version};
  const auto held = locks_.find(key);
  if (command.verb == Verb::kCompareAndSet && held != locks_.end()) options.lock = &held->second;
  return ShowPut(command,
                 client_.Put(key, command.value_from_stdin ? ReadStdin() : command.value, options));
}

int Shell::ShowPut(const Command& command, const absl::StatusOr<uint64_t>& version) {
  const absl::StatusCode code = version.status().code();
  if (code == absl::StatusCode::kAlreadyExists || code == absl::StatusCode::kNotFound ||
      (code == absl::StatusCode::kFailedPrecondition && command.if_version)) {
    return ReportRefused(version.status());
  }
  if (!version.ok()) return Report(version.status());
  if (options_.json) {
    Json json = KeyJson(command.keys[0]);
    json["version"] = *version;
    ShowJson(json);
  } else {
    Say(absl::StrCat(*version, "\n"));
  }
  return kExitDone;
}

int Shell::Delete(const Command& command) {
  if (command.keys.size() > 1) return MultiDelete(command);
  const std::string& key = command.keys[0];
  return ShowDelete(command, client_.Delete(key, {.only_if_version = command.if_version}));
}

int Shell::MultiDelete(const Command& command) {
  const auto deleted = client_.MultiDelete(command.keys);
  int code = kExitDone;
  std::set<std::string> told;
  for (size_t i = 0; i < deleted.size(); ++i) {
    if (!deleted[i].ok()) {
      code = std::max(code, ReportOfKey(command.keys[i], deleted[i].status(), told));
      continue;
    }
    Command of_key = command;
    of_key.keys = {command.keys[i]};
    code = std::max(code, ShowDelete(of_key, deleted[i]));
  }
  return code;
}

int Shell::ShowDelete(const Command& command, const absl::StatusOr<bool>& deleted) {
  const std::string& key = command.keys[0];
  if (deleted.status().code() == absl::StatusCode::kFailedPrecondition && command.if_version) {
    return ReportRefused(deleted.status());
  }
  if (!deleted.ok()) return Report(deleted.status());
  if (!*deleted) return NotFound(key);
  if (options_.json) {
    Json json = KeyJson(key);
    json["deleted"] = true;
    ShowJson(json);
  }
  return kExitDone;
}

// If another client holds the lock, and also if the server does not answer, the call ends as
// DeadlineExceeded. One more try tells the two apart.
absl::StatusOr<std::optional<Lock>> Shell::Acquire(const Command& command) {
  const std::string& key = command.keys[0];
  const std::chrono::milliseconds wait = command.wait.value_or(options_.deadline);
  interrupted_.store(false, std::memory_order_relaxed);
  const int64_t until_ns = MonotonicNs() + wait.count() * kNsPerMs;
  // Waits in slices, so that Interrupt works.
  constexpr std::chrono::milliseconds kSlice{100};
  for (int64_t left_ns = wait.count() * kNsPerMs; left_ns > 0; left_ns = until_ns - MonotonicNs()) {
    if (interrupted_.load(std::memory_order_relaxed)) break;
    const std::chrono::milliseconds left(std::max<int64_t>(1, left_ns / kNsPerMs));
    auto lock = client_.AcquireLock(key, std::min(left, kSlice), {.lease = command.lease});
    if (lock.ok()) return *std::move(lock);
    if (lock.status().code() != absl::StatusCode::kDeadlineExceeded) return lock.status();
  }
  return client_.TryLock(key, {}, {.lease = command.lease});
}

int Shell::LockKey(const Command& command) {
  const std::string& key = command.keys[0];
  if (locks_.contains(key)) {
    const std::string text = "held by this prompt or script already";
    Complain(absl::StrCat(text, ": ", Escaped(key)));
    if (options_.json) ShowJson(ErrorJson("Held", text));
    return kExitNotFound;
  }
  auto lock = Acquire(command);
  if (!lock.ok()) return Report(lock.status());
  if (!lock->has_value()) {
    SayUnlessQuiet(absl::StrCat("another holds the lock of ", Escaped(key)));
    if (options_.json) ShowJson(ErrorJson("Held", "another holds the lock"));
    return command.child.empty() ? kExitNotFound : kExitHeld;
  }
  if (!command.child.empty()) return HoldWhileRunning(command, **lock);
  locks_[key] = **std::move(lock);
  if (options_.json) {
    Json json = KeyJson(key);
    json["locked"] = true;
    ShowJson(json);
  }
  return kExitDone;
}

int Shell::HoldWhileRunning(const Command& command, const Lock& lock) {
  FlushAnswers();
  const int code = RunChild(command.child);
  const absl::Status unlocked = client_.Unlock(lock);
  if (unlocked.ok()) return code;
  Complain(
      absl::StrCat("the lock was lost while the command ran: ", std::string(unlocked.message())));
  return code == 0 ? static_cast<int>(kExitError) : code;
}

int Shell::Unlock(const Command& command) {
  if (command.force) return BreakLock(command.keys[0]);
  const auto held = locks_.find(command.keys[0]);
  if (held == locks_.end()) return ShowUnlocked(command.keys[0], false);
  const absl::Status status = client_.Unlock(held->second);
  locks_.erase(held);
  if (status.code() == absl::StatusCode::kAborted) return ReportRefused(status);
  return status.ok() ? ShowUnlocked(command.keys[0], true) : Report(status);
}

int Shell::Ping(const Command&) {
  const int64_t began = MonotonicNs();
  const std::vector<ServerPing> pings = client_.PingEach();
  const double us = static_cast<double>(MonotonicNs() - began) / kNsPerUs;
  int code = kExitDone;
  bool answered = false;
  for (const ServerPing& ping : pings) {
    answered |= ping.status.ok();
    if (!ping.status.ok()) code = std::max(code, Report(ping.status));
  }
  if (!answered) return code;
  if (options_.json) {
    ShowJson({{"round_trip_us", us}});
  } else {
    Say(absl::StrFormat("pong after %.1f us\n", us));
  }
  return code;
}

int Shell::Help(const Command& command) {
  const auto text = HelpText(command.topic);
  if (!text.ok()) return ReportUsage(text.status());
  Say(*text);
  return kExitDone;
}

}  // namespace gannet::kvcli
