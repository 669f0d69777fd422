#ifndef GANNET_CLIENT_H_
#define GANNET_CLIENT_H_

#include <gannet/observed.h>
#include <gannet/registered_memory.h>
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

// One key of MultiGetInto, and where its value goes.
struct GetTarget {
  std::string_view key;
  std::span<const RegisteredSpan> into;
};
// One key of MultiPutFrom, and where its value is.
struct PutSource {
  std::string_view key;
  std::span<const RegisteredSpan> from;
  PutOptions options = {};
};

// A synchronous client of one or several Gannet servers. Each key belongs to one server, which is
// chosen by rendezvous hashing of the key and the servers' names. A GET is one or two one-sided
// RDMA READs, and rarely a request to the server. Everything else is one round trip to that server.
//
//   auto client = gannet::Client::Connect({"10.0.0.1:7471"});
//   if (!client.ok()) ...
//   auto version = (*client)->Put("key", "value");
//   auto value = (*client)->Get("key");       // StatusOr<std::optional<Value>>
//   if (value.ok() && value->has_value()) use((*value)->data);
//
// Keys are 1 to 250 bytes, values 0 to 64 MiB, both binary. Values of more than about 4,000 bytes
// go without a copy between a server and memory of the caller's own, if that is registered:
//
//   auto memory = (*client)->AllocateMemory(16 << 20);        // or Register(span of your memory)
//   auto version = (*client)->PutFrom("model", *memory);
//   auto info = (*client)->GetInto("model", *memory);
//
// Other calls copy them once, and use up to some 80 MiB of buffers for the longest ones.
//
// A miss is an answer (std::nullopt), not
// an error.
//
// Errors of every call:
//   - InvalidArgument: the key is empty, or the key or value is too long. Nothing was sent.
//   - Unavailable: not applied; retry the call. A group has fewer members in sync than it wants; or
//     a key's server cannot be reached: every call for it fails at once, calls for other servers go
//     on, and the client tries to reconnect by itself.
//   - Unknown: a write that may or may not have been applied; or has fewer copies than it should.
//   - DeadlineExceeded: the server is alive but was too slow. A write may have been applied.
//   - ResourceExhausted: the server's memory or index is full. Nothing was changed.
//   - FailedPrecondition: only_if_version does not match; or Incr found a value that is no number;
//     or the caller holds the lock word for another key; or the call cannot work here (after
//     fork(), no device).
//   - AlreadyExists: only_if_absent was set, and the key exists.
//   - NotFound: only_if_present was set, and the key does not exist.
//   - OutOfRange: Incr, the number would not fit 64 bits; Append, the value would be longer than
//     1 MiB. Nothing was changed.
//   - Aborted: the lock was lost. Nothing was changed.
//   - Internal: a bug. The server refused a request that is right, or gave a wrong answer.
//
// Thread safety: all methods may be called from any thread. Calls of different threads run in
// parallel only as far as one connection allows; for throughput, use one Client per thread, or
// AsyncClient. Not usable in the child after fork().
class Client {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // Connects to every endpoint: "HOST:PORT" or "[IPV6]:PORT"; the port is 7471 if left out.
  // "NAME@HOST:PORT" also gives the name that the server must have. "cluster:HOST:PORT,HOST:PORT"
  // is a group, one server with several addresses. Returns as soon as at least one server is
  // connected and each other one is connected or out of reach, or after Options::connect_timeout.
  //
  // Unavailable: no server can be reached; or one cannot be reached and its name is not known
  // (write NAME@HOST:PORT). FailedPrecondition: a server has another name than the endpoint says;
  // or there is no RDMA device here (the message names softverbs-run and gannet::softverbs).
  // InvalidArgument: an endpoint is malformed, or two of them are the same server.
  // PermissionDenied, Unimplemented: a server refuses this client, or speaks another version.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(std::vector<std::string> endpoints,
                                                         Options options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  absl::StatusOr<std::optional<Value>> Get(std::string_view key,
                                           std::optional<Milliseconds> deadline = {});
  // Copies at most out.size() bytes of the value to `out`. ItemInfo::value_bytes says how long the
  // value is.
  absl::StatusOr<std::optional<ItemInfo>> GetInto(std::string_view key, std::span<std::byte> out,
                                                  std::optional<Milliseconds> deadline = {});
  // Puts the value into registered memory: the first bytes into the first span, and so on, as many
  // as there is room for. Long values land there without a copy, and no CPU touches their bytes. If
  // the key does not exist, or after an error, the memory's bytes are unspecified. At most 64
  // spans. FailedPrecondition: the memory has no address for the CPU, and the value is too short to
  // be READ without it (up to about 4,000 bytes).
  //
  // The call does not return as long as a device may still write into the memory, even if its
  // deadline is over. That is at most until the connection is taken for dead.
  absl::StatusOr<std::optional<ItemInfo>> GetInto(std::string_view key,
                                                  std::span<const RegisteredSpan> into,
                                                  std::optional<Milliseconds> deadline = {});
  absl::StatusOr<std::optional<ItemInfo>> GetInto(std::string_view key, const RegisteredSpan& into,
                                                  std::optional<Milliseconds> deadline = {});
  // GetInto for each target, all at once. Returns one result for each, in order.
  std::vector<absl::StatusOr<std::optional<ItemInfo>>> MultiGetInto(
      std::span<const GetTarget> targets, std::optional<Milliseconds> deadline = {});
  // Calls `use` with a view of a copy of the value that is valid during the call. Allocates nothing
  // for values of up to 1,280 bytes. `use` may call this client. Returns false if the key does not
  // exist.
  absl::StatusOr<bool> GetView(std::string_view key,
                               const std::function<void(std::string_view, const ItemInfo&)>& use,
                               std::optional<Milliseconds> deadline = {});
  // Returns one result per key, in order. The first READs of all keys go out at once. Each key has
  // its own error: if one server does not answer, the keys of the others are still found.
  std::vector<absl::StatusOr<std::optional<Value>>> MultiGet(
      std::span<const std::string> keys, std::optional<Milliseconds> deadline = {});

  // Returns whether the key exists. A remembered key costs one READ, any other one two. READs no
  // byte of values of more than about 4,000 bytes. Only all of a shorter item proves its key.
  absl::StatusOr<bool> Exists(std::string_view key, std::optional<Milliseconds> deadline = {});
  // Exists for each key, all at once. Returns one result for each, in order.
  std::vector<absl::StatusOr<bool>> MultiExists(std::span<const std::string> keys,
                                                std::optional<Milliseconds> deadline = {});

  struct IfChanged {
    bool changed = false;        // the item does not have the version given
    std::optional<Value> value;  // if changed: the new value; nullopt: the key does not exist
  };
  // Gets the value only if it is not the one of `version`, which an earlier call told. If it is,
  // one READ of 8 bytes tells so, provided that this client has read the item before by
  // GetIfChanged or, if it has more than about 4,000 bytes, by any call. Otherwise it costs what
  // Exists costs.
  absl::StatusOr<IfChanged> GetIfChanged(std::string_view key, uint64_t version,
                                         std::optional<Milliseconds> deadline = {});

  // Returns the new version.
  absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value,
                               const PutOptions& options = {},
                               std::optional<Milliseconds> deadline = {});
  // Puts a value that lies in registered memory, in the order of the spans. The server READs it
  // from there. At most 64 spans. The call does not return as long as the server may still READ,
  // even if its deadline is over.
  absl::StatusOr<uint64_t> PutFrom(std::string_view key, std::span<const RegisteredSpan> from,
                                   const PutOptions& options = {},
                                   std::optional<Milliseconds> deadline = {});
  absl::StatusOr<uint64_t> PutFrom(std::string_view key, const RegisteredSpan& from,
                                   const PutOptions& options = {},
                                   std::optional<Milliseconds> deadline = {});

  // Registers the caller's memory with all devices that this client uses, now and later. The memory
  // must outlive what is returned. ResourceExhausted: the limit of locked memory; the text says
  // what to do.
  absl::StatusOr<RegisteredMemory> Register(std::span<std::byte> memory,
                                            const RegisterOptions& options = {});
  // Makes new registered memory. It lives as long as what is returned. On softverbs, PutFrom is
  // faster from such memory than from other.
  absl::StatusOr<RegisteredMemory> AllocateMemory(uint64_t bytes);
  // Registers memory of another device, such as a GPU, by its dma-buf. The CPU need not be able to
  // address it. Unimplemented: the RDMA device, or its driver, cannot; softverbs cannot.
  absl::StatusOr<RegisteredMemory> RegisterDmabuf(int fd, uint64_t offset, uint64_t bytes,
                                                  const RegisterOptions& options = {});

  // Returns false if there was nothing to delete.
  absl::StatusOr<bool> Delete(std::string_view key, const DeleteOptions& options = {},
                              std::optional<Milliseconds> deadline = {});

  // Add is Put with only_if_absent, Replace is Put with only_if_present.
  absl::StatusOr<uint64_t> Add(std::string_view key, std::string_view value,
                               PutOptions options = {}, std::optional<Milliseconds> deadline = {});
  absl::StatusOr<uint64_t> Replace(std::string_view key, std::string_view value,
                                   PutOptions options = {},
                                   std::optional<Milliseconds> deadline = {});
  // Puts many values. The requests to a server go out with one post, as far as there is room for
  // them. Returns a new version or an error for each, in order. Each is a Put of its own: if one
  // fails, the others go on. Values for the same key are put in order.
  struct KeyValue {
    std::string_view key;
    std::string_view value;
    PutOptions options = {};
  };
  std::vector<absl::StatusOr<uint64_t>> MultiPut(std::span<const KeyValue> items,
                                                 std::optional<Milliseconds> deadline = {});
  // PutFrom for each source, all at once, as MultiPut.
  std::vector<absl::StatusOr<uint64_t>> MultiPutFrom(std::span<const PutSource> sources,
                                                     std::optional<Milliseconds> deadline = {});
  // Delete for each key, all at once, in order. Returns whether there was something to delete.
  std::vector<absl::StatusOr<bool>> MultiDelete(std::span<const std::string> keys,
                                                std::optional<Milliseconds> deadline = {});

  // Append a piece to a value, or prepend it. A piece has at most kPieceBytesMax bytes, the whole
  // value 1 MiB. Return the new version.
  static constexpr size_t kPieceBytesMax = 3782;
  absl::StatusOr<uint64_t> Append(std::string_view key, std::string_view piece,
                                  const ChangeOptions& options = {},
                                  std::optional<Milliseconds> deadline = {});
  absl::StatusOr<uint64_t> Prepend(std::string_view key, std::string_view piece,
                                   const ChangeOptions& options = {},
                                   std::optional<Milliseconds> deadline = {});
  // Add to a counter, or subtract from it, and return the new number. A counter is a value like
  // "-12", a number of 64 bits without zeros before it. A result that does not fit is refused.
  absl::StatusOr<int64_t> Incr(std::string_view key, int64_t delta = 1,
                               const IncrOptions& options = {},
                               std::optional<Milliseconds> deadline = {});
  absl::StatusOr<int64_t> Decr(std::string_view key, int64_t delta = 1,
                               const IncrOptions& options = {},
                               std::optional<Milliseconds> deadline = {});
  // Gives an item a new time to live, counted from now; 0 = for ever. The item gets a new version.
  // Returns false if there is no item.
  absl::StatusOr<bool> Touch(std::string_view key, Milliseconds ttl,
                             const TouchOptions& options = {},
                             std::optional<Milliseconds> deadline = {});
  // A Touch, then a Get. Returns nullopt if there was no item to touch. If another client changes
  // the item between the two, the value is the newer one. If it deletes the item, nullopt.
  absl::StatusOr<std::optional<Value>> GetAndTouch(std::string_view key, Milliseconds ttl,
                                                   std::optional<Milliseconds> deadline = {});
  // Removes all items of all servers, one by one, in about a second a million, and returns their
  // number. Every item that was there when it began is gone when it returns. After an error some
  // are gone. Aborted: until the deadline, partitions moved between groups, so it began again.
  absl::StatusOr<uint64_t> Flush(std::optional<Milliseconds> deadline = {});

  // Waits for the lock until the deadline. DeadlineExceeded: another client still holds it; the
  // message names the holder's connection id. Locks are advisory: a plain Put ignores them. Two
  // keys may share a lock word. Then taking the locks of both is FailedPrecondition.
  absl::StatusOr<Lock> AcquireLock(std::string_view key, std::optional<Milliseconds> deadline = {},
                                   const LockOptions& options = {});
  // Tries once. Returns nullopt if another client holds the lock.
  absl::StatusOr<std::optional<Lock>> TryLock(std::string_view key,
                                              std::optional<Milliseconds> deadline = {},
                                              const LockOptions& options = {});
  // Aborted: the lock was lost before. DeadlineExceeded: the lock will still be released, as soon
  // as the server answers or the connection ends.
  absl::Status Unlock(const Lock& lock, std::optional<Milliseconds> deadline = {});
  // Gives the lock this lease, counted from now, in place of any earlier one. Aborted: the lock had
  // been lost.
  absl::Status Extend(const Lock& lock, Milliseconds lease,
                      std::optional<Milliseconds> deadline = {});
  struct LockedValue {
    Lock lock;
    std::optional<Value> value;
  };
  // Locks and reads in one round trip. Use it for read-modify-write, with Put(.lock,
  // .only_if_version).
  absl::StatusOr<LockedValue> LockAndGet(std::string_view key,
                                         std::optional<Milliseconds> deadline = {},
                                         const LockOptions& options = {});
  // Returns all locks held at a server, by this client or others. `server` is its index among the
  // endpoints. Each lock was held at some moment during the call.
  absl::StatusOr<std::vector<HeldLock>> Locks(uint32_t server,
                                              std::optional<Milliseconds> deadline = {});
  // Breaks the key's lock, whoever holds it. The server refuses the holder's writes under the lock
  // from then on. Returns false if nobody held it.
  absl::StatusOr<bool> BreakLock(std::string_view key, std::optional<Milliseconds> deadline = {});

  // Returns the connections of all clients of a server. `server` is its index among the endpoints.
  // The list is at most a tenth of the server's --silence_ms old.
  absl::StatusOr<std::vector<ConnectedClient>> ConnectedClients(
      uint32_t server, std::optional<Milliseconds> deadline = {});
  // Returns the last requests that took a server long (its --slowlog_us), the newest first.
  absl::StatusOr<std::vector<SlowRequest>> SlowRequests(uint32_t server,
                                                        std::optional<Milliseconds> deadline = {});

  // Asks all servers at once. Returns one report per server, in the order of the endpoints.
  std::vector<ServerReport> Stats(std::optional<Milliseconds> deadline = {});
  // Returns where a server keeps its items. `server` is its index among the endpoints.
  absl::StatusOr<ServerStorage> Storage(uint32_t server, std::optional<Milliseconds> deadline = {});
  // Has a server with --data write a snapshot of all items, which begins after this call, and waits
  // until it is whole. Returns Storage with that snapshot. FailedPrecondition: the server has no
  // --data. DeadlineExceeded: the server is still writing it. Aborted: the server gave it up; the
  // text says why.
  absl::StatusOr<ServerStorage> Snapshot(uint32_t server,
                                         std::optional<Milliseconds> deadline = {});

  // Makes a round trip through the CPU of each server.
  std::vector<ServerPing> PingEach(std::optional<Milliseconds> deadline = {});
  // Returns OK if every server answered, otherwise the first error.
  absl::Status Ping(std::optional<Milliseconds> deadline = {});
  std::vector<ServerInfo> Info() const;

 private:
  class State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_H_
