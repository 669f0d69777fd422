#ifndef GANNET_CLIENT_H_
#define GANNET_CLIENT_H_

#include <gannet/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet {

// What one server answered, or why it did not.
struct ServerReport {
  std::string endpoint;
  std::string name;  // as ServerInfo::name
  absl::StatusOr<ServerStats> stats;
};
struct ServerPing {
  std::string endpoint;
  std::string name;
  absl::Status status;
};

// A synchronous client of one or several Gannet servers. A key's server is chosen by rendezvous
// hashing of the key and the servers' names; GETs are one-sided RDMA READs, everything else is one
// round trip to that server.
//
//   auto client = gannet::Client::Connect({"10.0.0.1:7471"});
//   if (!client.ok()) ...
//   auto version = (*client)->Put("key", "value");
//   auto value = (*client)->Get("key");       // StatusOr<std::optional<Value>>
//   if (value.ok() && value->has_value()) use((*value)->data);
//
// Keys are 1 to 250 bytes, values 0 to 1 MiB, both binary. A miss is an answer (std::nullopt), not
// an error.
//
// Errors, of every call:
//   - InvalidArgument: the key or value is too long or empty; nothing was sent.
//   - Unavailable: not applied; retry the call. While the key's server cannot be reached, every
//     call ends so at once, and others go on; the client tries to reconnect by itself.
//   - Unknown: a write that may or may not have been applied.
//   - DeadlineExceeded: the server lives but was too slow; a write may have been applied.
//   - ResourceExhausted: the server's memory or index is full; nothing was changed.
//   - FailedPrecondition: only_if_version does not match; two keys of one lock word; or the call
//     cannot work here (after fork(), no device).
//   - AlreadyExists: only_if_absent, and the key is there.
//   - Aborted: the lock was lost; nothing was changed.
//   - Internal: the server refused a request, or gave an answer, that there should not be: a bug.
//
// Thread safety: all methods may be called from any thread; calls of different threads go on in
// parallel only as far as one connection allows (for throughput use one Client a thread, or
// AsyncClient). Not usable after fork() in the child.
class Client {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // Connects to every endpoint, "HOST:PORT" or "[IPV6]:PORT" (port 7471 when left out), before
  // which may stand the name that the server must have, "NAME@HOST:PORT". Returns when at least one
  // server is connected and each other one is too or cannot be reached, at the latest after
  // Options::connect_timeout; Info tells which are not.
  //
  // Unavailable: none can be reached, or one that cannot has a name that is not known (write
  // NAME@HOST:PORT). FailedPrecondition: a server has another name than was written; no RDMA device
  // here (the message names softverbs-run and gannet::softverbs). InvalidArgument: an endpoint that
  // is none, or two of them are one server. PermissionDenied, Unimplemented: a server refuses this
  // client, or speaks another version.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(std::vector<std::string> endpoints,
                                                         Options options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  absl::StatusOr<std::optional<Value>> Get(std::string_view key,
                                           std::optional<Milliseconds> deadline = {});
  // Copies at most out.size() bytes of the value; ItemInfo::value_bytes says how long it is.
  absl::StatusOr<std::optional<ItemInfo>> GetInto(std::string_view key, std::span<std::byte> out,
                                                  std::optional<Milliseconds> deadline = {});
  // Calls `use` with a view of the value that is valid during the call. False: a miss.
  absl::StatusOr<bool> GetView(std::string_view key,
                               const std::function<void(std::string_view, const ItemInfo&)>& use,
                               std::optional<Milliseconds> deadline = {});
  // One result per key, in order; all their first READs go out at once. Each key has its own error:
  // where one server does not answer, the keys of the others are found all the same.
  std::vector<absl::StatusOr<std::optional<Value>>> MultiGet(
      std::span<const std::string> keys, std::optional<Milliseconds> deadline = {});

  // Returns the new version.
  absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value,
                               const PutOptions& options = {},
                               std::optional<Milliseconds> deadline = {});
  // False: there was nothing to delete.
  absl::StatusOr<bool> Delete(std::string_view key, const DeleteOptions& options = {},
                              std::optional<Milliseconds> deadline = {});

  // Waits for the lock until the deadline (DeadlineExceeded, the message names the holder's
  // connection id). Locks are among those who lock: a plain Put does not look at them. Two keys may
  // share a lock word; taking both is FailedPrecondition.
  absl::StatusOr<Lock> AcquireLock(std::string_view key, std::optional<Milliseconds> deadline = {},
                                   const LockOptions& options = {});
  // One try: nullopt when another holds it.
  absl::StatusOr<std::optional<Lock>> TryLock(std::string_view key,
                                              std::optional<Milliseconds> deadline = {},
                                              const LockOptions& options = {});
  // Aborted: it had been lost. DeadlineExceeded: it will be released all the same, as soon as the
  // server answers or the connection ends.
  absl::Status Unlock(const Lock& lock, std::optional<Milliseconds> deadline = {});
  // From now on the lock has this lease, whatever it had before. Aborted: it had been lost.
  absl::Status Extend(const Lock& lock, Milliseconds lease,
                      std::optional<Milliseconds> deadline = {});
  struct LockedValue {
    Lock lock;
    std::optional<Value> value;
  };
  // Lock and read in one round trip; for read-modify-write with Put(.lock, .only_if_version).
  absl::StatusOr<LockedValue> LockAndGet(std::string_view key,
                                         std::optional<Milliseconds> deadline = {},
                                         const LockOptions& options = {});
  // The locks that are held at a server (its index among the endpoints), whoever holds them. Each
  // was held at some moment of the call.
  absl::StatusOr<std::vector<HeldLock>> Locks(uint32_t server,
                                              std::optional<Milliseconds> deadline = {});
  // Takes the key's lock from whoever holds it; writes under it are refused from then on. False:
  // nobody held it.
  absl::StatusOr<bool> BreakLock(std::string_view key, std::optional<Milliseconds> deadline = {});

  // Each of these asks all servers at once; one report per server, in the order of the endpoints.
  std::vector<ServerReport> Stats(std::optional<Milliseconds> deadline = {});
  // A round trip through the server's CPU.
  std::vector<ServerPing> PingEach(std::optional<Milliseconds> deadline = {});
  // OK: every server answered. Otherwise the first error.
  absl::Status Ping(std::optional<Milliseconds> deadline = {});
  std::vector<ServerInfo> Info() const;

 private:
  class State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_H_
