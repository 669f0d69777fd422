// Client: calls for many keys. All are the same call, RunMany, with another verb.

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/api/client_state.h"

namespace gannet {
namespace {

using Milliseconds = Client::Milliseconds;

// What each key's answer is, if its operation succeeded.
bool FoundOf(const Op& op) { return op.done.found; }
uint64_t VersionOf(const Op& op) { return op.done.info.version; }
std::optional<ItemInfo> InfoOf(const Op& op) {
  return op.done.found ? std::optional<ItemInfo>(op.done.info) : std::nullopt;
}
std::optional<Value> ValueOf(const Op& op) {
  return op.done.found ? std::optional<Value>(MakeValue(op)) : std::nullopt;
}

// The places of the keys that are asked for, and for each key which of these has its answer: equal
// keys are asked for once.
struct DistinctKeys {
  // Looks for equal keys until `has_time` says no: who asks for so many that this takes all the
  // time gets no answer anyway.
  template <class HasTime>
  DistinctKeys(std::span<const std::string> keys, const HasTime& has_time) {
    absl::flat_hash_map<std::string_view, size_t> first;
    bool looks = true;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i % kKeysPerLook == kKeysPerLook - 1) looks = looks && has_time();
      if (!looks) {
        answer_of_key.push_back(asked.size());
        asked.push_back(i);
        continue;
      }
      const auto [at, added] = first.try_emplace(keys[i], asked.size());
      if (added) asked.push_back(i);
      answer_of_key.push_back(at->second);
    }
  }

  static constexpr size_t kKeysPerLook = 1024;
  std::vector<size_t> asked;
  std::vector<size_t> answer_of_key;
};

template <class Answer>
std::vector<Answer> AnswerOfEachKey(std::vector<Answer> answers, const DistinctKeys& keys) {
  if (keys.asked.size() == keys.answer_of_key.size()) return answers;
  std::vector<Answer> of_each;
  of_each.reserve(keys.answer_of_key.size());
  for (const size_t i : keys.answer_of_key) of_each.push_back(answers[i]);
  return of_each;
}

}  // namespace

std::vector<absl::StatusOr<std::optional<Value>>> Client::MultiGet(
    std::span<const std::string> keys, std::optional<Milliseconds> deadline) {
  const int64_t end_ns = state_->EndNs(deadline);
  const DistinctKeys distinct(keys, [&] { return state_->driver.NowNs() < end_ns; });
  const auto request_of = [&](size_t i) {
    absl::StatusOr<OpRequest> request = KeyRequest(OpType::kGet, keys[distinct.asked[i]]);
    if (request.ok()) request->share_window = true;
    return request;
  };
  return AnswerOfEachKey(state_->RunMany(distinct.asked.size(), end_ns, request_of, ValueOf),
                         distinct);
}

std::vector<absl::StatusOr<std::optional<ItemInfo>>> Client::MultiGetInto(
    std::span<const GetTarget> targets, std::optional<Milliseconds> deadline) {
  const auto request_of = [&](size_t i) {
    return GetIntoRequest(state_->driver.engine(), targets[i].key, targets[i].into);
  };
  return state_->RunMany(targets.size(), state_->EndNs(deadline), request_of, InfoOf);
}

std::vector<absl::StatusOr<bool>> Client::MultiExists(std::span<const std::string> keys,
                                                      std::optional<Milliseconds> deadline) {
  const int64_t end_ns = state_->EndNs(deadline);
  const DistinctKeys distinct(keys, [&] { return state_->driver.NowNs() < end_ns; });
  const auto request_of = [&](size_t i) {
    return KeyRequest(OpType::kExists, keys[distinct.asked[i]]);
  };
  return AnswerOfEachKey(state_->RunMany(distinct.asked.size(), end_ns, request_of, FoundOf),
                         distinct);
}

std::vector<absl::StatusOr<uint64_t>> Client::MultiPut(std::span<const KeyValue> items,
                                                       std::optional<Milliseconds> deadline) {
  const auto request_of = [&](size_t i) {
    return PutRequest(items[i].key, items[i].value, items[i].options);
  };
  return state_->RunMany(items.size(), state_->EndNs(deadline), request_of, VersionOf);
}

std::vector<absl::StatusOr<uint64_t>> Client::MultiPutFrom(std::span<const PutSource> sources,
                                                           std::optional<Milliseconds> deadline) {
  const auto request_of = [&](size_t i) {
    return PutFromRequest(state_->driver.engine(), sources[i].key, sources[i].from,
                          sources[i].options);
  };
  return state_->RunMany(sources.size(), state_->EndNs(deadline), request_of, VersionOf);
}

std::vector<absl::StatusOr<bool>> Client::MultiDelete(std::span<const std::string> keys,
                                                      std::optional<Milliseconds> deadline) {
  const auto request_of = [&](size_t i) { return DeleteRequest(keys[i], {}); };
  return state_->RunMany(keys.size(), state_->EndNs(deadline), request_of, FoundOf);
}

}  // namespace gannet
