#ifndef GANNET_CLIENT_C_CALL_H_
#define GANNET_CLIENT_C_CALL_H_

#include <gannet/gannet.h>
#include <gannet/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/c/report_status.h"

namespace gannet {

// From the structures of C to those of C++.

// Copies a structure that begins with its size. The program that made `given` may be older or newer
// than this library. Fields that `given` lacks are 0. InvalidArgument: it sets fields that this
// library does not know. nullptr: all fields are 0.
template <class T>
absl::Status CopySized(const T* given, T* out) {
  std::memset(static_cast<void*>(out), 0, sizeof(T));
  if (given == nullptr) return absl::OkStatus();
  const size_t size = given->size;
  if (size < sizeof(size_t) || size > 4096) {
    return absl::InvalidArgumentError(
        "the size of a structure is not set: begin with its INIT macro");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      return absl::InvalidArgumentError("an option that this libgannet does not know: update it");
    }
  }
  std::memcpy(static_cast<void*>(out), given, std::min(size, sizeof(T)));
  return absl::OkStatus();
}

inline std::chrono::milliseconds Milliseconds(uint64_t ms) {
  return std::chrono::milliseconds(
      static_cast<int64_t>(std::min<uint64_t>(ms, std::numeric_limits<int64_t>::max())));
}

absl::StatusOr<Options> ReadOptions(const gannet_options* given);
absl::StatusOr<std::vector<std::string>> ReadServers(const char* const* servers, size_t count);

// InvalidArgument: the library did not make this lock.
absl::StatusOr<Lock> ReadLock(const gannet_lock& lock);
// REQUIRES: the lock is one that the library made, so its key fits.
void WriteLock(const Lock& lock, gannet_lock* out);

// A gannet_call that was read and checked.
class Call {
 public:
  // The fields that a function uses.
  enum Fields : uint32_t {
    kDeadline = 1,
    kItem = 2,  // ttl_ms and flags
    kIfAbsent = 4,
    kIfPresent = 8,
    kIfVersion = 16,  // and a lock
    kInitial = 32,
    kLease = 64,
    kOfPut = kItem | kIfAbsent | kIfPresent | kIfVersion,
    kOfChange = kItem | kIfPresent | kIfVersion,
  };

  // InvalidArgument: a field is set that is not one of `fields`. Without this check, the call would
  // ignore a condition that the caller believes to hold.
  absl::Status Read(const gannet_call* given, uint32_t fields);

  // Valid as long as this Call.
  std::optional<std::chrono::milliseconds> deadline() const {
    if (call_.deadline_ms == 0) return std::nullopt;
    return Milliseconds(call_.deadline_ms);
  }
  PutOptions put() const;
  DeleteOptions remove() const { return {.only_if_version = version(), .lock = lock()}; }
  TouchOptions touch() const { return {.only_if_version = version(), .lock = lock()}; }
  ChangeOptions change() const;
  IncrOptions incr() const;
  LockOptions lock_options() const;

 private:
  bool Has(uint32_t condition) const { return (call_.conditions & condition) != 0; }
  std::optional<uint64_t> version() const {
    if (!Has(GANNET_IF_VERSION)) return std::nullopt;
    return call_.version;
  }
  const Lock* lock() const { return call_.lock == nullptr ? nullptr : &lock_; }

  gannet_call call_;
  Lock lock_;
};

// Reads the call, and runs run(const Call&) if it is valid. Every call may have a deadline.
template <class F>
gannet_status WithCall(const gannet_call* call, uint32_t fields, F run) {
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline | fields);
  if (!status.ok()) return Report(status);
  return run(static_cast<const Call&>(read));
}

// Returns OK or NotFound: `false` means that the key is absent.
inline gannet_status WasThere(const absl::StatusOr<bool>& result) {
  if (!result.ok()) return Report(result.status());
  return *result ? GANNET_OK : GANNET_NOT_FOUND;
}

}  // namespace gannet

#endif  // GANNET_CLIENT_C_CALL_H_
