// Reads a gannet_call: which fields are set, and whether this call has them. A field that the call
// does not know is refused, because to ignore it would betray what the caller asked for.

#include "client/c/call.h"

#include <algorithm>
#include <string_view>

namespace gannet {
namespace {

// Returns which of Call::Fields are set.
uint32_t FieldsOf(const gannet_call& call) {
  uint32_t fields = 0;
  if (call.deadline_ms != 0) fields |= Call::kDeadline;
  if (call.ttl_ms != 0 || call.flags != 0) fields |= Call::kItem;
  if ((call.conditions & GANNET_IF_ABSENT) != 0) fields |= Call::kIfAbsent;
  if ((call.conditions & GANNET_IF_PRESENT) != 0) fields |= Call::kIfPresent;
  if ((call.conditions & GANNET_IF_VERSION) != 0 || call.lock != nullptr) {
    fields |= Call::kIfVersion;
  }
  if (call.initial != 0) fields |= Call::kInitial;
  if (call.lease_ms != 0) fields |= Call::kLease;
  return fields;
}

constexpr uint32_t kConditions = GANNET_IF_ABSENT | GANNET_IF_PRESENT | GANNET_IF_VERSION;

}  // namespace

absl::StatusOr<Options> ReadOptions(const gannet_options* given) {
  gannet_options c;
  absl::Status status = CopySized(given, &c);
  if (!status.ok()) return status;
  if (c.wait > GANNET_WAIT_POLL)
    return absl::InvalidArgumentError("gannet_options.wait is unknown");
  Options options;
  if (c.device != nullptr) options.device = c.device;
  if (c.auth_file != nullptr) options.auth_file = c.auth_file;
  if (c.connect_timeout_ms != 0) options.connect_timeout = Milliseconds(c.connect_timeout_ms);
  if (c.deadline_ms != 0) options.deadline = Milliseconds(c.deadline_ms);
  if (c.location_cache_bytes != 0) options.location_cache_bytes = c.location_cache_bytes;
  if (c.no_location_cache != 0) options.location_cache_bytes = 0;
  options.near_cache_bytes = c.near_cache_bytes;
  if (c.rails != 0) options.rails = c.rails;
  if (c.depth != 0) options.depth = c.depth;
  options.wait = c.wait == GANNET_WAIT_POLL ? Wait::kPoll : Wait::kAdaptive;
  if (c.poll_max_us != 0) options.poll_max = std::chrono::microseconds(c.poll_max_us);
  options.reconnect = c.no_reconnect == 0;
  if (c.log != nullptr) {
    options.log = [log = c.log, context = c.log_context](LogLevel level, std::string_view line) {
      log(static_cast<int>(level), line.data(), line.size(), context);
    };
  }
  return options;
}

absl::StatusOr<std::vector<std::string>> ReadServers(const char* const* servers, size_t count) {
  std::vector<std::string> endpoints;
  for (size_t i = 0; i < count; ++i) {
    if (servers[i] == nullptr) return absl::InvalidArgumentError("a server is NULL");
    endpoints.emplace_back(servers[i]);
  }
  return endpoints;
}

absl::StatusOr<Lock> ReadLock(const gannet_lock& lock) {
  if (lock.key_size > sizeof(lock.key)) {
    return absl::InvalidArgumentError("this is no gannet_lock that the library made");
  }
  return Lock{
      .key = std::string(Bytes(lock.key, lock.key_size)), .word = lock.word, .server = lock.server};
}

void WriteLock(const Lock& lock, gannet_lock* out) {
  std::memset(out, 0, sizeof(*out));
  out->word = lock.word;
  out->server = lock.server;
  out->key_size = static_cast<uint32_t>(std::min(lock.key.size(), sizeof(out->key)));
  std::memcpy(out->key, lock.key.data(), out->key_size);
}

absl::Status Call::Read(const gannet_call* given, uint32_t fields) {
  absl::Status status = CopySized(given, &call_);
  if (given == nullptr || !status.ok()) return status;
  if ((call_.conditions & ~kConditions) != 0) {
    return absl::InvalidArgumentError("gannet_call.conditions has a condition that is unknown");
  }
  if ((FieldsOf(call_) & ~fields) != 0) {
    return absl::InvalidArgumentError(
        "gannet_call has an option that this function does not know; gannet/gannet.h lists them");
  }
  if (call_.lock == nullptr) return absl::OkStatus();
  absl::StatusOr<Lock> lock = ReadLock(*call_.lock);
  if (!lock.ok()) return lock.status();
  lock_ = *std::move(lock);
  return absl::OkStatus();
}

PutOptions Call::put() const {
  return {.flags = call_.flags,
          .ttl = Milliseconds(call_.ttl_ms),
          .only_if_absent = Has(GANNET_IF_ABSENT),
          .only_if_present = Has(GANNET_IF_PRESENT),
          .only_if_version = version(),
          .lock = lock()};
}

ChangeOptions Call::change() const {
  return {.flags = call_.flags,
          .ttl = Milliseconds(call_.ttl_ms),
          .only_if_present = Has(GANNET_IF_PRESENT),
          .only_if_version = version(),
          .lock = lock()};
}

IncrOptions Call::incr() const {
  return {.initial = call_.initial,
          .flags = call_.flags,
          .ttl = Milliseconds(call_.ttl_ms),
          .only_if_present = Has(GANNET_IF_PRESENT),
          .only_if_version = version(),
          .lock = lock()};
}

LockOptions Call::lock_options() const {
  LockOptions options;
  if (call_.lease_ms != 0) options.lease = Milliseconds(call_.lease_ms);
  return options;
}

}  // namespace gannet
