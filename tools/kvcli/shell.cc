#include "tools/kvcli/shell.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/kvcli/answers.h"
#include "tools/kvcli/text.h"
#include "tools/kvcli/verbs.h"

namespace gannet::kvcli {
namespace {

std::string Expiry(const ItemInfo& info) {
  return info.expiry_ms == 0 ? "never" : absl::StrCat("in ", Seconds(info.ttl_left), " s");
}

int WriteOut(Shell& shell, const Command& command, const Value& value) {
  std::ofstream file(command.out, std::ios::binary | std::ios::trunc);
  file.write(value.data.data(), static_cast<std::streamsize>(value.data.size()));
  file.close();
  if (!file) {
    return shell.Report(absl::UnavailableError(
        absl::StrCat("cannot write ", command.out, ": ", std::strerror(errno))));
  }
  if (shell.options().json) shell.ShowItem(command.keys[0], value, /*meta=*/true);
  return kExitDone;
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
  const VerbRow& row = RowOf(command.verb);
  const int code = row.run != nullptr ? row.run(*this, command)
                                      : ReportUsage(absl::InvalidArgumentError(absl::StrCat(
                                            row.name, " works from the command line only")));
  FlushAnswers();
  return code;
}

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

void Shell::ShowItem(std::string_view key, const Value& value, bool meta) {
  const ItemInfo& info = value.info;
  if (options_.json) {
    Json json = KeyJson(key);
    json["found"] = true;
    json["version"] = info.version;
    json["flags"] = info.flags;
    json["expiry_ms"] = info.expiry_ms;
    json["value_bytes"] = info.value_bytes;
    if (!meta) AddBytes("value", value.data, true, json);
    ShowJson(json);
  } else if (meta) {
    Say(absl::StrFormat("version %d\nflags %d\nexpires %s\nvalue_bytes %d\n", info.version,
                        info.flags, Expiry(info), info.value_bytes));
  } else {
    Say(value.data);
    if (!options_.raw) Say("\n");
  }
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

int Shell::ShowGet(const Command& command, const absl::StatusOr<std::optional<Value>>& value) {
  const std::string& key = command.keys[0];
  if (!value.ok()) return Report(value.status());
  if (!value->has_value()) return NotFound(key);
  if (!command.out.empty()) return WriteOut(*this, command, **value);
  ShowItem(key, **value, command.meta);
  return kExitDone;
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

bool Shell::Pause(std::chrono::milliseconds time) const {
  constexpr std::chrono::milliseconds kSlice{50};
  for (std::chrono::milliseconds rest = time; rest.count() > 0; rest -= kSlice) {
    if (interrupted_.load(std::memory_order_relaxed)) return false;
    std::this_thread::sleep_for(std::min(rest, kSlice));
  }
  return true;
}

}  // namespace gannet::kvcli
