// Shell: the commands that change values where they are, store many at once, or remove all.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/kvcli/shell.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {
namespace {

// Returns whether the user says yes.
bool Asked(std::string_view question) {
  std::fprintf(stderr, "%s ", std::string(question).c_str());
  std::array<char, 16> answer{};
  if (std::fgets(answer.data(), answer.size(), stdin) == nullptr) return false;
  return std::string_view(answer.data()) == "yes\n";
}

}  // namespace

int Shell::MultiPut(const Command& command) {
  std::vector<Client::KeyValue> items;
  for (size_t i = 0; i < command.keys.size(); ++i) {
    items.push_back(
        {command.keys[i], command.values[i], {.flags = command.flags, .ttl = command.ttl}});
  }
  int code = kExitDone;
  const auto versions = client_.MultiPut(items);
  std::set<std::string> told;
  for (size_t i = 0; i < versions.size(); ++i) {
    Command one;
    one.keys = {command.keys[i]};
    code = std::max(code, versions[i].ok() ? ShowPut(one, versions[i])
                                           : ReportOfKey(one.keys[0], versions[i].status(), told));
  }
  return code;
}

int Shell::Append(const Command& command) {
  if (command.value_from_stdin) {
    return ReportUsage(absl::InvalidArgumentError("- is no VALUE here; put it behind a --"));
  }
  const std::string& key = command.keys[0];
  const ChangeOptions options{.flags = command.flags,
                              .ttl = command.ttl,
                              .only_if_present = command.if_present,
                              .only_if_version = command.if_version};
  return ShowPut(command, command.verb == Verb::kAppend
                              ? client_.Append(key, command.value, options)
                              : client_.Prepend(key, command.value, options));
}

int Shell::Count(const Command& command) {
  const std::string& key = command.keys[0];
  const IncrOptions options{.initial = command.initial,
                            .flags = command.flags,
                            .ttl = command.ttl,
                            .only_if_present = command.if_present,
                            .only_if_version = command.if_version};
  const auto number = command.verb == Verb::kIncr ? client_.Incr(key, command.number, options)
                                                  : client_.Decr(key, command.number, options);
  const absl::StatusCode code = number.status().code();
  if (code == absl::StatusCode::kNotFound ||
      (code == absl::StatusCode::kFailedPrecondition && command.if_version)) {
    return ReportRefused(number.status());
  }
  if (!number.ok()) return Report(number.status());
  if (options_.json) {
    Json json = KeyJson(key);
    json["number"] = *number;
    ShowJson(json);
  } else {
    Say(absl::StrCat(*number, "\n"));
  }
  return kExitDone;
}

int Shell::Touch(const Command& command) {
  const std::string& key = command.keys[0];
  const auto touched = client_.Touch(key, command.ttl);
  if (!touched.ok()) return Report(touched.status());
  if (!*touched) return NotFound(key);
  if (options_.json) {
    Json json = KeyJson(key);
    json["touched"] = true;
    ShowJson(json);
  }
  return kExitDone;
}

int Shell::Flush(const Command& command) {
  const bool asks = !command.yes && isatty(STDIN_FILENO) != 0;
  if (!command.yes && !asks) {
    return ReportUsage(absl::InvalidArgumentError("flush removes everything: it needs --yes"));
  }
  if (asks && !Asked("Remove everything from all servers? yes/no")) {
    SayUnlessQuiet("nothing was removed");
    return kExitNotFound;
  }
  // However long it takes, it goes on as long as the servers answer.
  const auto removed = client_.Flush(std::chrono::hours(1));
  if (!removed.ok()) return Report(removed.status());
  if (options_.json) {
    ShowJson({{"removed", *removed}});
  } else {
    Say(absl::StrCat(*removed, "\n"));
  }
  return kExitDone;
}

}  // namespace gannet::kvcli
