#include "proxy/jobs/script_items.h"

#include <utility>

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
  value_bytes_ = 0;
}

void ScriptItems::Take(Operation& got) {
  Item& item = items_[std::string(got.key)];
  item = {};
  if (!got.found) return;
  item.read_version = item.version = got.info.version;
  item.flags = got.info.flags;
  item.expires = got.info.expiry_ms != 0;
  item.ttl_left = got.ttl_left();
  item.value.assign(got.found_value());
  value_bytes_ += item.value.size();
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
  operation.info.flags = item.flags;
  operation.info.value_bytes = static_cast<uint32_t>(item.value.size());
  operation.info.expiry_ms = item.expires ? 1 : 0;
  operation.info.ttl_left = item.ttl_left;
  if (is_get && operation.wants_value) operation.out = item.value;
}

void ScriptItems::Put(Operation& put, Item& item) {
  if (put.put.only_if_absent && put.found) {
    put.code = StatusCode::kAlreadyExists;
  } else if (put.put.only_if_present && !put.found) {
    put.code = StatusCode::kNotFound;
  } else {
    SetValue(put, item, std::string(put.value));
    if (put.code != StatusCode::kOk) return;
    item.flags = put.put.flags;
    Touch(item, put.put.ttl);
  }
}

void ScriptItems::Extend(Operation& operation, Item& item) {
  std::string value = item.value;
  value.insert(operation.kind == Kind::kAppend ? value.size() : 0, operation.value);
  SetValue(operation, item, std::move(value));
}

void ScriptItems::Count(Operation& incr, Item& item) {
  int64_t number = 0;
  if (incr.found && !redis::ParseInteger(item.value, &number)) {
    incr.code = StatusCode::kFailedPrecondition;
  } else if (__builtin_add_overflow(number, incr.delta, &incr.number)) {
    incr.code = StatusCode::kOutOfRange;
  } else {
    SetValue(incr, item, std::to_string(incr.number));
  }
}

void ScriptItems::SetValue(Operation& operation, Item& item, std::string value) {
  const size_t others = value_bytes_ - item.value.size();
  if (others + value.size() > kValueBytesMax) {
    operation.code = StatusCode::kResourceExhausted;
    operation.refusal = "the values of a script have at most 64 MiB together";
    return;
  }
  value_bytes_ = others + value.size();
  item.value = std::move(value);
  item.is_written = true;
  item.version = next_version_++;
}

void ScriptItems::Touch(Item& item, milliseconds ttl) {
  item.expires = ttl != milliseconds(0);
  item.ttl_left = ttl;
  item.is_touched = true;
  item.version = next_version_++;
}

void ScriptItems::Remove(Item& item) {
  value_bytes_ -= item.value.size();
  item = {.read_version = item.read_version, .is_written = true};
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
    write.put.flags = item.flags;
    write.put.ttl = item.ttl_left;
    write.value = item.value;
  }
}

}  // namespace gannet::proxy
