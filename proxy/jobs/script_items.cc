#include "proxy/jobs/script_items.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "proxy/jobs/redis_commands.h"

namespace gannet::proxy {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;
using std::chrono::milliseconds;

}  // namespace

void ScriptItems::Clear() {
  items_.clear();
  missing_.clear();
  value_bytes_ = read_bytes_ = 0;
}

void ScriptItems::Take(Operation& got) {
  Item& item = items_[std::string(got.key)];
  item = {};
  if (!got.found) return;
  item.read_version = item.version = got.info.version;
  item.now = item.was = {.flags = got.info.flags, .ttl_left = got.ttl_left()};
  item.now.value.assign(got.found_value());
  value_bytes_ += item.now.value.size();
  read_bytes_ += item.now.value.size();
}

bool ScriptItems::Run(Job& job) {
  while (job.next != nullptr) {
    const Job::Stage stage = std::exchange(job.next, nullptr);
    job.began = false;
    stage(job);
    if (!job.began) continue;
    for (Operation& operation : job.answers()) {
      const auto found = items_.find(operation.key);
      if (found == items_.end()) {
        missing_.emplace_back(operation.key);
      } else {
        Answer(operation, found->second);
      }
    }
    if (!missing_.empty()) return false;
  }
  return true;
}

void ScriptItems::Answer(Operation& operation, Item& item) {
  operation.found = item.version != 0;
  const PutOptions& put = operation.put;
  const bool is_get = operation.kind == Kind::kGet || operation.kind == Kind::kGetAndTouch;
  if (!is_get && put.only_if_version && *put.only_if_version != item.version) {
    operation.code = StatusCode::kFailedPrecondition;
    return;
  }
  switch (operation.kind) {
    case Kind::kGet:
      break;
    case Kind::kTouch:
    case Kind::kGetAndTouch:
      if (operation.found) Touch(item, put.ttl);
      break;
    case Kind::kDelete:
      if (operation.found) Remove(item);
      break;
    case Kind::kPut:
      Put(operation, item);
      break;
    case Kind::kAppend:
    case Kind::kPrepend:
      Extend(operation, item);
      break;
    case Kind::kIncr:
      Count(operation, item);
      break;
    default:
      GANNET_CHECK(false, "a command of a script uses only its keys");
  }
  operation.info.version = item.version;
  operation.info.flags = item.now.flags;
  operation.info.value_bytes = static_cast<uint32_t>(item.now.value.size());
  operation.info.expiry_ms = item.now.ttl_left == milliseconds(0) ? 0 : 1;
  operation.info.ttl_left = item.now.ttl_left;
  if (is_get && operation.wants_value) operation.out = item.now.value;
}

void ScriptItems::Put(Operation& put, Item& item) {
  if (put.put.only_if_absent && put.found) {
    put.code = StatusCode::kAlreadyExists;
  } else if (put.put.only_if_present && !put.found) {
    put.code = StatusCode::kNotFound;
  } else {
    SetValue(put, item, std::string(put.value));
    if (put.code != StatusCode::kOk) return;
    item.now.flags = put.put.flags;
    Touch(item, put.put.ttl);
  }
}

void ScriptItems::Extend(Operation& operation, Item& item) {
  std::string value = item.now.value;
  value.insert(operation.kind == Kind::kAppend ? value.size() : 0, operation.value);
  SetValue(operation, item, std::move(value));
}

void ScriptItems::Count(Operation& incr, Item& item) {
  int64_t number = 0;
  if (incr.found && !redis::ParseInteger(item.now.value, &number)) {
    incr.code = StatusCode::kFailedPrecondition;
  } else if (__builtin_add_overflow(number, incr.delta, &incr.number)) {
    incr.code = StatusCode::kOutOfRange;
  } else {
    SetValue(incr, item, std::to_string(incr.number));
  }
}

void ScriptItems::SetValue(Operation& operation, Item& item, std::string value) {
  KeepValue(item);
  const size_t others = value_bytes_ - item.now.value.size();
  if (others + value.size() > kValueBytesMax) {
    operation.code = StatusCode::kResourceExhausted;
    operation.refusal = "the values of a script have at most 64 MiB together";
    return;
  }
  value_bytes_ = others + value.size();
  item.now.value = std::move(value);
  item.version = next_version_++;
}

void ScriptItems::KeepValue(Item& item) {
  if (std::exchange(item.is_written, true)) return;
  item.was.value = item.now.value;
  value_bytes_ += item.was.value.size();
}

void ScriptItems::Touch(Item& item, milliseconds ttl) {
  item.now.ttl_left = ttl;
  item.version = next_version_++;
}

void ScriptItems::Remove(Item& item) {
  KeepValue(item);
  value_bytes_ -= item.now.value.size();
  item.now = {};
  item.version = 0;
}

bool ScriptItems::has_changed() const {
  for (const auto& [key, item] : items_) {
    if (item.has_changed()) return true;
  }
  return false;
}

bool ScriptItems::BeginChecks(Job& job) const {
  for (const auto& [key, item] : items_) {
    if (!item.has_changed()) job.Begin(Kind::kGet, key).wants_value = false;
  }
  return job.began;
}

bool ScriptItems::IsUnchanged(const Operation& checked) const {
  return items_.find(checked.key)->second.read_version == checked.info.version;
}

void ScriptItems::BeginWrites(Job& job) const {
  for (const auto& [key, item] : items_) {
    if (!item.has_changed()) continue;
    const bool is_put = item.version != 0 && item.is_written;
    Operation& write = job.Begin(item.version == 0 ? Kind::kDelete
                                 : is_put          ? Kind::kPut
                                                   : Kind::kTouch,
                                 key);
    write.put.only_if_version = item.read_version;
    write.put.flags = item.now.flags;
    write.put.ttl = item.now.ttl_left;
    write.value = item.now.value;
  }
}

bool ScriptItems::BeginUndo(Job& job) const {
  std::vector<std::pair<std::string_view, uint64_t>> applied;  // with the version of the write
  for (const Operation& write : job.answers()) {
    const bool is_applied =
        write.code == StatusCode::kOk && (write.kind == Kind::kPut || write.found);
    if (is_applied) applied.emplace_back(write.key, write.info.version);
  }
  for (const auto& [key, version] : applied) {
    const Item& item = items_.find(key)->second;
    Operation& undo = job.Begin(item.read_version == 0 ? Kind::kDelete
                                : item.is_written      ? Kind::kPut
                                                       : Kind::kTouch,
                                key);
    undo.put.only_if_version = item.version == 0 ? 0 : version;
    undo.put.flags = item.was.flags;
    undo.put.ttl = item.was.ttl_left;
    undo.value = item.was.value;
  }
  return !applied.empty();
}

}  // namespace gannet::proxy
