// The verbs for values.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/kvcli/run_verbs.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {
namespace {

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

// Stops behind the longest value, so that an endless file is refused as too long.
std::string ReadValue(std::ifstream& file) {
  std::string bytes;
  char block[65536];
  while (bytes.size() <= kValueBytesMax && file) {
    file.read(block, sizeof(block));  // at an error it sets badbit; an iterator would throw
    bytes.append(block, static_cast<size_t>(file.gcount()));
  }
  return bytes;
}

// Returns whether the user says yes.
bool Asked(std::string_view question) {
  std::fprintf(stderr, "%s ", std::string(question).c_str());
  std::array<char, 16> answer{};
  if (std::fgets(answer.data(), answer.size(), stdin) == nullptr) return false;
  return std::string_view(answer.data()) == "yes\n";
}

int PutFile(Shell& shell, const Command& command) {
  std::ifstream file(command.file, std::ios::binary);
  Command put = command;
  put.file.clear();
  put.value = ReadValue(file);
  if (!file.is_open() || file.bad()) {
    return shell.Report(absl::NotFoundError(
        absl::StrCat("cannot read ", command.file, ": ", std::strerror(errno))));
  }
  return RunPut(shell, put);
}

int MultiDelete(Shell& shell, const Command& command) {
  const auto deleted = shell.client().MultiDelete(command.keys);
  int code = kExitDone;
  std::set<std::string> told;
  for (size_t i = 0; i < deleted.size(); ++i) {
    if (!deleted[i].ok()) {
      code = std::max(code, shell.ReportOfKey(command.keys[i], deleted[i].status(), told));
      continue;
    }
    Command of_key = command;
    of_key.keys = {command.keys[i]};
    code = std::max(code, shell.ShowDelete(of_key, deleted[i]));
  }
  return code;
}

}  // namespace

int RunPut(Shell& shell, const Command& command) {
  const std::string& key = command.keys[0];
  if (command.value_from_stdin && !shell.options().one_shot) {
    return shell.ReportUsage(absl::InvalidArgumentError(
        "- reads the value from stdin, but here stdin has the commands"));
  }
  if (!command.file.empty()) return PutFile(shell, command);
  PutOptions options{.flags = command.flags,
                     .ttl = command.ttl,
                     .only_if_absent = command.if_absent,
                     .only_if_present = command.if_present,
                     .only_if_version = command.if_version};
  const auto held = shell.locks().find(key);
  if (command.verb == Verb::kCompareAndSet && held != shell.locks().end())
    options.lock = &held->second;
  return shell.ShowPut(
      command,
      shell.client().Put(key, command.value_from_stdin ? ReadStdin() : command.value, options));
}

int RunGet(Shell& shell, const Command& command) {
  return shell.ShowGet(command, shell.client().Get(command.keys[0]));
}

int RunGetAndTouch(Shell& shell, const Command& command) {
  return shell.ShowGet(command, shell.client().GetAndTouch(command.keys[0], command.ttl));
}

int RunMultiGet(Shell& shell, const Command& command) {
  const auto values = shell.client().MultiGet(command.keys);
  int code = kExitDone;
  std::set<std::string> told;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].ok()) {
      code = std::max(code, shell.ReportOfKey(command.keys[i], values[i].status(), told));
    } else if (!values[i]->has_value()) {
      code = std::max(code,
                      shell.options().json ? shell.NotFound(command.keys[i]) : int{kExitNotFound});
      if (!shell.options().json) Say("(nil)\n");
    } else {
      shell.ShowItem(command.keys[i], **values[i], false);
      if (shell.options().raw && !shell.options().json) Say("\n");
    }
  }
  return code;
}

// Counts as Redis does: a key that is given twice counts twice.
int RunExists(Shell& shell, const Command& command) {
  const auto found = shell.client().MultiExists(command.keys);
  int code = kExitDone;
  size_t count = 0;
  std::set<std::string> told;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].ok()) {
      code = std::max(code, shell.ReportOfKey(command.keys[i], found[i].status(), told));
      continue;
    }
    count += *found[i];
    if (!*found[i]) code = std::max(code, int{kExitNotFound});
    if (!shell.options().json) continue;
    Json json = KeyJson(command.keys[i]);
    json["found"] = *found[i];
    shell.ShowJson(json);
  }
  if (!shell.options().json && code <= kExitNotFound) Say(absl::StrCat(count, "\n"));
  return code;
}

int RunTtl(Shell& shell, const Command& command) {
  const std::string& key = command.keys[0];
  const auto value = shell.client().Get(key);
  if (!value.ok()) return shell.Report(value.status());
  if (!value->has_value()) return shell.NotFound(key);
  const ItemInfo& info = (*value)->info;
  if (shell.options().json) {
    Json json = KeyJson(key);
    json["found"] = true;
    json["ttl_ms"] = info.expiry_ms == 0 ? Json() : Json(info.ttl_left.count());
    shell.ShowJson(json);
  } else {
    Say(absl::StrCat(info.expiry_ms == 0 ? "never" : Seconds(info.ttl_left), "\n"));
  }
  return kExitDone;
}

int RunDelete(Shell& shell, const Command& command) {
  if (command.keys.size() > 1) return MultiDelete(shell, command);
  const std::string& key = command.keys[0];
  return shell.ShowDelete(command,
                          shell.client().Delete(key, {.only_if_version = command.if_version}));
}

int RunMultiPut(Shell& shell, const Command& command) {
  std::vector<Client::KeyValue> items;
  for (size_t i = 0; i < command.keys.size(); ++i) {
    items.push_back(
        {command.keys[i], command.values[i], {.flags = command.flags, .ttl = command.ttl}});
  }
  int code = kExitDone;
  const auto versions = shell.client().MultiPut(items);
  std::set<std::string> told;
  for (size_t i = 0; i < versions.size(); ++i) {
    Command one;
    one.keys = {command.keys[i]};
    code = std::max(code, versions[i].ok()
                              ? shell.ShowPut(one, versions[i])
                              : shell.ReportOfKey(one.keys[0], versions[i].status(), told));
  }
  return code;
}

int RunAppend(Shell& shell, const Command& command) {
  if (command.value_from_stdin) {
    return shell.ReportUsage(absl::InvalidArgumentError("- is no VALUE here; put it behind a --"));
  }
  const std::string& key = command.keys[0];
  const ChangeOptions options{.flags = command.flags,
                              .ttl = command.ttl,
                              .only_if_present = command.if_present,
                              .only_if_version = command.if_version};
  return shell.ShowPut(command, command.verb == Verb::kAppend
                                    ? shell.client().Append(key, command.value, options)
                                    : shell.client().Prepend(key, command.value, options));
}

int RunCount(Shell& shell, const Command& command) {
  const std::string& key = command.keys[0];
  const IncrOptions options{.initial = command.initial,
                            .flags = command.flags,
                            .ttl = command.ttl,
                            .only_if_present = command.if_present,
                            .only_if_version = command.if_version};
  const auto number = command.verb == Verb::kIncr
                          ? shell.client().Incr(key, command.number, options)
                          : shell.client().Decr(key, command.number, options);
  const absl::StatusCode code = number.status().code();
  if (code == absl::StatusCode::kNotFound ||
      (code == absl::StatusCode::kFailedPrecondition && command.if_version)) {
    return shell.ReportRefused(number.status());
  }
  if (!number.ok()) return shell.Report(number.status());
  if (shell.options().json) {
    Json json = KeyJson(key);
    json["number"] = *number;
    shell.ShowJson(json);
  } else {
    Say(absl::StrCat(*number, "\n"));
  }
  return kExitDone;
}

int RunTouch(Shell& shell, const Command& command) {
  const std::string& key = command.keys[0];
  const auto touched = shell.client().Touch(key, command.ttl);
  if (!touched.ok()) return shell.Report(touched.status());
  if (!*touched) return shell.NotFound(key);
  if (shell.options().json) {
    Json json = KeyJson(key);
    json["touched"] = true;
    shell.ShowJson(json);
  }
  return kExitDone;
}

int RunFlush(Shell& shell, const Command& command) {
  const bool asks = !command.yes && isatty(STDIN_FILENO) != 0;
  if (!command.yes && !asks) {
    return shell.ReportUsage(
        absl::InvalidArgumentError("flush removes everything: it needs --yes"));
  }
  if (asks && !Asked("Remove everything from all servers? yes/no")) {
    shell.SayUnlessQuiet("nothing was removed");
    return kExitNotFound;
  }
  // However long it takes, it goes on as long as the servers answer.
  const auto removed = shell.client().Flush(std::chrono::hours(1));
  if (!removed.ok()) return shell.Report(removed.status());
  if (shell.options().json) {
    shell.ShowJson({{"removed", *removed}});
  } else {
    Say(absl::StrCat(*removed, "\n"));
  }
  return kExitDone;
}

}  // namespace gannet::kvcli
