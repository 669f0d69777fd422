// The calls of a gannet_client about locks, each over one call of the C++ client. A lock in C is a
// structure of the caller's.

#include <optional>
#include <utility>
#include <vector>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "client/c/client_handle.h"
#include "client/c/report_status.h"

using gannet::Bytes;
using gannet::Call;
using gannet::Report;

gannet_status gannet_client_lock(gannet_client* client, const void* key, size_t key_size,
                                 const gannet_call* call, gannet_lock* lock) {
  *lock = {};
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline | Call::kLease);
  if (!status.ok()) return Report(status);
  const auto taken =
      client->client->AcquireLock(Bytes(key, key_size), read.deadline(), read.lock_options());
  if (!taken.ok()) return Report(taken.status());
  gannet::WriteLock(*taken, lock);
  return GANNET_OK;
}

gannet_status gannet_client_try_lock(gannet_client* client, const void* key, size_t key_size,
                                     const gannet_call* call, gannet_lock* lock) {
  *lock = {};
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline | Call::kLease);
  if (!status.ok()) return Report(status);
  const auto taken =
      client->client->TryLock(Bytes(key, key_size), read.deadline(), read.lock_options());
  if (!taken.ok()) return Report(taken.status());
  if (!taken->has_value()) return GANNET_LOCKED;
  gannet::WriteLock(**taken, lock);
  return GANNET_OK;
}

gannet_status gannet_client_unlock(gannet_client* client, const gannet_lock* lock,
                                   const gannet_call* call) {
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  const absl::StatusOr<gannet::Lock> held = gannet::ReadLock(*lock);
  if (!held.ok()) return Report(held.status());
  return Report(client->client->Unlock(*held, read.deadline()));
}

gannet_status gannet_client_extend(gannet_client* client, const gannet_lock* lock,
                                   uint64_t lease_ms, const gannet_call* call) {
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  const absl::StatusOr<gannet::Lock> held = gannet::ReadLock(*lock);
  if (!held.ok()) return Report(held.status());
  return Report(client->client->Extend(*held, gannet::Milliseconds(lease_ms), read.deadline()));
}

gannet_status gannet_client_lock_and_get(gannet_client* client, const void* key, size_t key_size,
                                         const gannet_call* call, gannet_lock* lock,
                                         gannet_value* value) {
  *lock = {};
  *value = {};
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline | Call::kLease);
  if (!status.ok()) return Report(status);
  const auto locked =
      client->client->LockAndGet(Bytes(key, key_size), read.deadline(), read.lock_options());
  if (!locked.ok()) return Report(locked.status());
  if (locked->value.has_value()) {
    status = gannet::CopyValue(locked->value->data, locked->value->info, value);
  }
  if (!status.ok()) {
    // After an error the caller holds no lock.
    static_cast<void>(client->client->Unlock(locked->lock, read.deadline()));
    return Report(status);
  }
  gannet::WriteLock(locked->lock, lock);
  return GANNET_OK;
}

gannet_status gannet_client_locks(gannet_client* client, uint32_t server, const gannet_call* call,
                                  gannet_held_lock** locks, size_t* lock_count) {
  *locks = nullptr;
  *lock_count = 0;
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  const auto held = client->client->Locks(server, read.deadline());
  if (!held.ok()) return Report(held.status());
  return gannet::WriteHeldLocks(*held, locks, lock_count);
}

gannet_status gannet_client_break_lock(gannet_client* client, const void* key, size_t key_size,
                                       const gannet_call* call) {
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  const absl::StatusOr<bool> broken =
      client->client->BreakLock(Bytes(key, key_size), read.deadline());
  if (!broken.ok()) return Report(broken.status());
  return *broken ? GANNET_OK : GANNET_NOT_FOUND;
}
