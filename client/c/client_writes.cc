// The calls of a gannet_client that write, each over one call of the C++ client: what the
// gannet_call says is read, the call is made, and the version or number is written to an output
// that may be missing.

#include <utility>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "client/c/client_handle.h"
#include "client/c/report_status.h"

using gannet::Bytes;
using gannet::Call;
using gannet::Report;
using gannet::WasThere;
using gannet::WithCall;

namespace {

// Writes a version or a number to an output that is optional.
template <class T>
gannet_status WriteResult(const absl::StatusOr<T>& result, T* out) {
  if (!result.ok()) return Report(result.status());
  if (out != nullptr) *out = *result;
  return GANNET_OK;
}

}  // namespace

gannet_status gannet_client_put(gannet_client* client, const void* key, size_t key_size,
                                const void* value, size_t value_size, const gannet_call* call,
                                uint64_t* version) {
  if (version != nullptr) *version = 0;
  return WithCall(call, Call::kOfPut, [&](const Call& c) {
    return WriteResult(
        client->client->Put(Bytes(key, key_size), Bytes(value, value_size), c.put(), c.deadline()),
        version);
  });
}

gannet_status gannet_client_add(gannet_client* client, const void* key, size_t key_size,
                                const void* value, size_t value_size, const gannet_call* call,
                                uint64_t* version) {
  if (version != nullptr) *version = 0;
  return WithCall(call, Call::kOfPut, [&](const Call& c) {
    return WriteResult(
        client->client->Add(Bytes(key, key_size), Bytes(value, value_size), c.put(), c.deadline()),
        version);
  });
}

gannet_status gannet_client_replace(gannet_client* client, const void* key, size_t key_size,
                                    const void* value, size_t value_size, const gannet_call* call,
                                    uint64_t* version) {
  if (version != nullptr) *version = 0;
  return WithCall(call, Call::kOfPut, [&](const Call& c) {
    return WriteResult(client->client->Replace(Bytes(key, key_size), Bytes(value, value_size),
                                               c.put(), c.deadline()),
                       version);
  });
}

gannet_status gannet_client_put_from_memory(gannet_client* client, const void* key, size_t key_size,
                                            const gannet_span* spans, size_t span_count,
                                            const gannet_call* call, uint64_t* version) {
  if (version != nullptr) *version = 0;
  return WithCall(call, Call::kOfPut, [&](const Call& c) {
    return WriteResult(
        client->client->PutFrom(Bytes(key, key_size), gannet::AsSpans(spans, span_count), c.put(),
                                c.deadline()),
        version);
  });
}

gannet_status gannet_client_delete(gannet_client* client, const void* key, size_t key_size,
                                   const gannet_call* call) {
  return WithCall(call, Call::kIfVersion, [&](const Call& c) {
    return WasThere(client->client->Delete(Bytes(key, key_size), c.remove(), c.deadline()));
  });
}

gannet_status gannet_client_append(gannet_client* client, const void* key, size_t key_size,
                                   const void* piece, size_t piece_size, const gannet_call* call,
                                   uint64_t* version) {
  if (version != nullptr) *version = 0;
  return WithCall(call, Call::kOfChange, [&](const Call& c) {
    return WriteResult(client->client->Append(Bytes(key, key_size), Bytes(piece, piece_size),
                                              c.change(), c.deadline()),
                       version);
  });
}

gannet_status gannet_client_prepend(gannet_client* client, const void* key, size_t key_size,
                                    const void* piece, size_t piece_size, const gannet_call* call,
                                    uint64_t* version) {
  if (version != nullptr) *version = 0;
  return WithCall(call, Call::kOfChange, [&](const Call& c) {
    return WriteResult(client->client->Prepend(Bytes(key, key_size), Bytes(piece, piece_size),
                                               c.change(), c.deadline()),
                       version);
  });
}

gannet_status gannet_client_incr(gannet_client* client, const void* key, size_t key_size,
                                 int64_t delta, const gannet_call* call, int64_t* number) {
  if (number != nullptr) *number = 0;
  return WithCall(call, Call::kOfChange | Call::kInitial, [&](const Call& c) {
    return WriteResult(client->client->Incr(Bytes(key, key_size), delta, c.incr(), c.deadline()),
                       number);
  });
}

gannet_status gannet_client_decr(gannet_client* client, const void* key, size_t key_size,
                                 int64_t delta, const gannet_call* call, int64_t* number) {
  if (number != nullptr) *number = 0;
  return WithCall(call, Call::kOfChange | Call::kInitial, [&](const Call& c) {
    return WriteResult(client->client->Decr(Bytes(key, key_size), delta, c.incr(), c.deadline()),
                       number);
  });
}

gannet_status gannet_client_touch(gannet_client* client, const void* key, size_t key_size,
                                  uint64_t ttl_ms, const gannet_call* call) {
  return WithCall(call, Call::kIfVersion, [&](const Call& c) {
    return WasThere(client->client->Touch(Bytes(key, key_size), gannet::Milliseconds(ttl_ms),
                                          c.touch(), c.deadline()));
  });
}

gannet_status gannet_client_get_and_touch(gannet_client* client, const void* key, size_t key_size,
                                          uint64_t ttl_ms, const gannet_call* call,
                                          gannet_value* value) {
  *value = {};
  return WithCall(call, 0, [&](const Call& c) -> gannet_status {
    const auto got = client->client->GetAndTouch(Bytes(key, key_size), gannet::Milliseconds(ttl_ms),
                                                 c.deadline());
    if (!got.ok()) return Report(got.status());
    if (!got->has_value()) return GANNET_NOT_FOUND;
    return Report(gannet::CopyValue((*got)->data, (*got)->info, value));
  });
}

gannet_status gannet_client_flush(gannet_client* client, const gannet_call* call,
                                  uint64_t* removed) {
  if (removed != nullptr) *removed = 0;
  return WithCall(call, 0, [&](const Call& c) {
    return WriteResult(client->client->Flush(c.deadline()), removed);
  });
}
