// Calls for many keys.

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "client/c/client_handle.h"
#include "client/c/report_status.h"

using gannet::Bytes;
using gannet::Call;
using gannet::FirstError;
using gannet::Report;
using gannet::WithCall;

namespace {

std::vector<std::string> NamesOf(const gannet_key* keys, size_t key_count) {
  std::vector<std::string> names;
  names.reserve(key_count);
  for (size_t i = 0; i < key_count; ++i) names.emplace_back(Bytes(keys[i].data, keys[i].size));
  return names;
}

// Writes one status for each answer, which says whether its key was there.
gannet_status WriteFound(const std::vector<absl::StatusOr<bool>>& answers,
                         gannet_status* statuses) {
  FirstError error;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) {
      statuses[i] = error.Add(answers[i].status());
    } else {
      statuses[i] = *answers[i] ? GANNET_OK : GANNET_NOT_FOUND;
    }
  }
  return error.Take();
}

// Here, a put that found no key did not happen, so NotFound is an error too.
gannet_status WriteVersions(const std::vector<absl::StatusOr<uint64_t>>& versions,
                            gannet_put_result* results) {
  FirstError error;
  gannet_status first = GANNET_OK;
  for (size_t i = 0; i < versions.size(); ++i) {
    results[i].status = error.Add(versions[i].status());
    if (versions[i].ok()) results[i].version = *versions[i];
    if (first == GANNET_OK) first = results[i].status;
  }
  error.Take();
  return first;
}

// Reads the options of each put into `calls`, which keeps their locks. make(item, Call) makes a
// put.
template <class Put, class Item, class Make>
absl::Status ReadPuts(std::span<const Item> items, std::deque<Call>* calls, std::vector<Put>* puts,
                      Make make) {
  puts->reserve(items.size());
  for (const Item& item : items) {
    absl::Status status = calls->emplace_back().Read(item.call, Call::kOfPut);
    if (!status.ok()) return status;
    puts->push_back(make(item, calls->back()));
  }
  return absl::OkStatus();
}

}  // namespace

gannet_status gannet_client_multi_get(gannet_client* client, const gannet_key* keys,
                                      size_t key_count, const gannet_call* call,
                                      gannet_get_result* results) {
  std::fill_n(results, key_count, gannet_get_result{});
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  const auto answers = client->client->MultiGet(NamesOf(keys, key_count), read.deadline());
  FirstError error;
  for (size_t i = 0; i < key_count; ++i) {
    results[i].status = GANNET_NOT_FOUND;
    if (!answers[i].ok()) {
      results[i].status = error.Add(answers[i].status());
    } else if (answers[i]->has_value()) {
      const gannet::Value& value = **answers[i];
      results[i].status = error.Add(gannet::CopyValue(value.data, value.info, &results[i].value));
    }
  }
  return error.Take();
}

gannet_status gannet_client_multi_get_into_memory(gannet_client* client,
                                                  const gannet_get_target* targets,
                                                  size_t target_count, const gannet_call* call,
                                                  gannet_info_result* results) {
  std::fill_n(results, target_count, gannet_info_result{});
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  std::vector<gannet::GetTarget> asked;
  asked.reserve(target_count);
  for (size_t i = 0; i < target_count; ++i) {
    asked.push_back({Bytes(targets[i].key.data, targets[i].key.size),
                     gannet::AsSpans(targets[i].spans, targets[i].span_count)});
  }
  const auto answers = client->client->MultiGetInto(asked, read.deadline());
  FirstError error;
  for (size_t i = 0; i < target_count; ++i) {
    results[i].status = GANNET_NOT_FOUND;
    if (!answers[i].ok()) {
      results[i].status = error.Add(answers[i].status());
    } else if (answers[i]->has_value()) {
      results[i].status = GANNET_OK;
      results[i].info = gannet::MakeInfo(**answers[i]);
    }
  }
  return error.Take();
}

gannet_status gannet_client_multi_exists(gannet_client* client, const gannet_key* keys,
                                         size_t key_count, const gannet_call* call,
                                         gannet_status* statuses) {
  std::fill_n(statuses, key_count, GANNET_OK);
  return WithCall(call, 0, [&](const Call& c) {
    return WriteFound(client->client->MultiExists(NamesOf(keys, key_count), c.deadline()),
                      statuses);
  });
}

gannet_status gannet_client_multi_put(gannet_client* client, const gannet_put_item* items,
                                      size_t item_count, const gannet_call* call,
                                      gannet_put_result* results) {
  std::fill_n(results, item_count, gannet_put_result{});
  return WithCall(call, 0, [&](const Call& c) {
    std::deque<Call> calls;
    std::vector<gannet::Client::KeyValue> puts;
    absl::Status status =
        ReadPuts(std::span(items, item_count), &calls, &puts,
                 [](const gannet_put_item& item, const Call& of_item) -> gannet::Client::KeyValue {
                   return {.key = Bytes(item.key.data, item.key.size),
                           .value = Bytes(item.value.data, item.value.size),
                           .options = of_item.put()};
                 });
    if (!status.ok()) return Report(status);
    return WriteVersions(client->client->MultiPut(puts, c.deadline()), results);
  });
}

gannet_status gannet_client_multi_put_from_memory(gannet_client* client,
                                                  const gannet_put_source* sources,
                                                  size_t source_count, const gannet_call* call,
                                                  gannet_put_result* results) {
  std::fill_n(results, source_count, gannet_put_result{});
  return WithCall(call, 0, [&](const Call& c) {
    std::deque<Call> calls;
    std::vector<gannet::PutSource> puts;
    absl::Status status =
        ReadPuts(std::span(sources, source_count), &calls, &puts,
                 [](const gannet_put_source& source, const Call& of_item) -> gannet::PutSource {
                   return {.key = Bytes(source.key.data, source.key.size),
                           .from = gannet::AsSpans(source.spans, source.span_count),
                           .options = of_item.put()};
                 });
    if (!status.ok()) return Report(status);
    return WriteVersions(client->client->MultiPutFrom(puts, c.deadline()), results);
  });
}

gannet_status gannet_client_multi_delete(gannet_client* client, const gannet_key* keys,
                                         size_t key_count, const gannet_call* call,
                                         gannet_status* statuses) {
  std::fill_n(statuses, key_count, GANNET_OK);
  return WithCall(call, 0, [&](const Call& c) {
    return WriteFound(client->client->MultiDelete(NamesOf(keys, key_count), c.deadline()),
                      statuses);
  });
}
