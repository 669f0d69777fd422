// Shell: the commands that read items.

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/kvcli/shell.h"

namespace gannet::kvcli {
namespace {

std::string Seconds(std::chrono::milliseconds time) {
  return absl::StrFormat("%d.%03d", time.count() / 1000, time.count() % 1000);
}

std::string Expiry(const ItemInfo& info) {
  return info.expiry_ms == 0 ? "never" : absl::StrCat("in ", Seconds(info.ttl_left), " s");
}

}  // namespace

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

int Shell::Get(const Command& command) { return ShowGet(command, client_.Get(command.keys[0])); }

int Shell::ShowGet(const Command& command, const absl::StatusOr<std::optional<Value>>& value) {
  const std::string& key = command.keys[0];
  if (!value.ok()) return Report(value.status());
  if (!value->has_value()) return NotFound(key);
  if (!command.out.empty()) return WriteOut(command, **value);
  ShowItem(key, **value, command.meta);
  return kExitDone;
}

int Shell::MultiGet(const Command& command) {
  const auto values = client_.MultiGet(command.keys);
  int code = kExitDone;
  std::set<std::string> told;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].ok()) {
      code = std::max(code, ReportOfKey(command.keys[i], values[i].status(), told));
    } else if (!values[i]->has_value()) {
      code = std::max(code, options_.json ? NotFound(command.keys[i]) : int{kExitNotFound});
      if (!options_.json) Say("(nil)\n");
    } else {
      ShowItem(command.keys[i], **values[i], false);
      if (options_.raw && !options_.json) Say("\n");
    }
  }
  return code;
}

// Counts as Redis does: a key that is given twice counts twice.
int Shell::Exists(const Command& command) {
  const auto found = client_.MultiExists(command.keys);
  int code = kExitDone;
  size_t count = 0;
  std::set<std::string> told;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].ok()) {
      code = std::max(code, ReportOfKey(command.keys[i], found[i].status(), told));
      continue;
    }
    count += *found[i];
    if (!*found[i]) code = std::max(code, int{kExitNotFound});
    if (!options_.json) continue;
    Json json = KeyJson(command.keys[i]);
    json["found"] = *found[i];
    ShowJson(json);
  }
  if (!options_.json && code <= kExitNotFound) Say(absl::StrCat(count, "\n"));
  return code;
}

int Shell::Ttl(const Command& command) {
  const std::string& key = command.keys[0];
  const auto value = client_.Get(key);
  if (!value.ok()) return Report(value.status());
  if (!value->has_value()) return NotFound(key);
  const ItemInfo& info = (*value)->info;
  if (options_.json) {
    Json json = KeyJson(key);
    json["found"] = true;
    json["ttl_ms"] = info.expiry_ms == 0 ? Json() : Json(info.ttl_left.count());
    ShowJson(json);
  } else {
    Say(absl::StrCat(info.expiry_ms == 0 ? "never" : Seconds(info.ttl_left), "\n"));
  }
  return kExitDone;
}

}  // namespace gannet::kvcli
