#ifndef GANNET_ASYNC_CLIENT_H_
#define GANNET_ASYNC_CLIENT_H_

#include <gannet/registered_memory.h>
#include <gannet/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet {

enum class OpType : uint8_t {
  kGet,
  kPut,
  kDelete,
  kLock,
  kUnlock,
  kLockAndGet,
  kStats,
  kPing,
  kExtendLock,
  kBreakLock,
  kListLocks,
  kAppend,
  kPrepend,
  kIncr,
  kTouch,
  kGetAndTouch,
  kFlush,
  kGetInto,
  kStorage,  // Client only
  kListClients,
  kSlowLog,
  kExists,
  kGetIfChanged,
  kMap,  // the library's own
};

// One finished operation. `code` is absl::StatusCode::kOk also for a miss; `found` tells.
struct Completion {
  uint64_t user_data = 0;  // as given when it was started
  OpType type = OpType::kGet;
  absl::StatusCode code = absl::StatusCode::kOk;
  // Get, exists, delete, touch: the key was there. Lock, LockAndGet: the lock was acquired.
  bool found = false;
  // If a put ends with ResourceExhausted: true if the index of the server is full, false if its
  // memory is full.
  bool index_full = false;
  // Get, exists, LockAndGet: the item's, with version 0 if there is none. Put: the new version.
  // With FailedPrecondition: the current version, 0 = absent.
  ItemInfo info;
  // `type` says which of the two it is. One word, because each GET pays for every field.
  union {
    // Lock, LockAndGet: Lock::word if the lock was acquired. Otherwise the holder's word.
    uint64_t lock_word = 0;
    // Incr: the new number. Flush: the number of removed items.
    int64_t counted;
  };
  int64_t number() const { return counted; }
  OpCost cost;
};

// Many operations in flight from one thread: start operations, then Poll for completions, as with a
// completion queue. No allocation, lock or system call per operation.
//
// Order. What is started behind a write of the same key (Put, Delete, Append, Incr, Touch ...)
// takes effect after it: writes of a key happen in the order in which they were started, and a Get
// sees every write that was started before it. For that a Get waits for the answers to the writes
// of its key ahead of it, and a write for those to writes of long values (over some 4,000 bytes). A
// write does not wait for Gets of its key that were started before it, and they may see it.
// Operations on different keys have no order. A write that came to its deadline may still happen,
// at any later time.
//
//   client.Get("key", buffer, 1);
//   client.Put("other", value, {}, 2);
//   Completion done[16];
//   size_t n = client.Poll(done);
//
// Whoever has nothing else to do calls Wait instead of Poll. Whoever has an event loop (epoll,
// poll, asio, libuv) sleeps in it until fd() is readable:
//
//   add client.fd() to the loop, for reading and level-triggered;
//   before the loop sleeps:     while (client.Arm()) { n = client.Poll(done); ... }
//   when client.fd() is readable: n = client.Poll(done); ...
//
// client/example/event_loop.cc is a whole program.
//
// One owner thread. It must call Poll, or Wait, at least every sixth of what its servers'
// --silence_ms is (ServerInfo::silence_ms; 0.8 s by default), or sleep in Wait or on fd(), which
// becomes readable in time: then servers hear from it in time, and it notices dead ones in time.
// With up to four sixths (3 s) between Polls servers still hear from it in time; but as each gap
// counts as one sixth of silence, it notices a dead one only after seven of them. With more than
// that servers may take the client for dead, and release its locks.
//
// Keys are copied; buffers and values must stay valid until the completion.
class AsyncClient {
 public:
  // As Client::Connect.
  static absl::StatusOr<std::unique_ptr<AsyncClient>> Connect(std::vector<std::string> endpoints,
                                                              Options options = {});
  ~AsyncClient();
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;

  // Each starts one operation, which is posted by the next Poll at the latest. ResourceExhausted:
  // Options::depth operations are in flight; poll first. InvalidArgument: key or value. Other
  // errors come as completions.
  absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data);
  absl::Status Put(std::string_view key, std::string_view value, const PutOptions& options,
                   uint64_t user_data);
  // As Client::Exists. Many that are started before a Poll share its post, which is what
  // MultiExists does there; so do Deletes and PutFroms.
  absl::Status Exists(std::string_view key, uint64_t user_data);
  // As Client::GetIfChanged. The item is unchanged if the completion has `found` and this version.
  // Then nothing is written to `out`.
  absl::Status GetIfChanged(std::string_view key, uint64_t version, std::span<std::byte> out,
                            uint64_t user_data);
  // As Client::GetInto and PutFrom, with registered memory. The array of spans must stay valid
  // until the completion, too. Its type is kGetInto, or kPut.
  absl::Status GetInto(std::string_view key, std::span<const RegisteredSpan> into,
                       uint64_t user_data);
  absl::Status PutFrom(std::string_view key, std::span<const RegisteredSpan> from,
                       const PutOptions& options, uint64_t user_data);
  absl::Status Delete(std::string_view key, const DeleteOptions& options, uint64_t user_data);
  // As those of Client. Writes that are started before a Poll share its post, which is what
  // MultiPut does there. GetAndTouch is two round trips. Flush has no order with operations on keys
  // that are under way. It is of one server, or one group of a cluster. Of a cluster, begin those
  // of all groups (server_count) before one Poll. If all end as OK, every item that was there
  // before is gone. Aborted: partitions move between groups, so what was in them may be left; flush
  // all again after a while.
  absl::Status Add(std::string_view key, std::string_view value, PutOptions options,
                   uint64_t user_data);
  absl::Status Replace(std::string_view key, std::string_view value, PutOptions options,
                       uint64_t user_data);
  absl::Status Append(std::string_view key, std::string_view piece, const ChangeOptions& options,
                      uint64_t user_data);
  absl::Status Prepend(std::string_view key, std::string_view piece, const ChangeOptions& options,
                       uint64_t user_data);
  absl::Status Incr(std::string_view key, int64_t delta, const IncrOptions& options,
                    uint64_t user_data);
  absl::Status Decr(std::string_view key, int64_t delta, const IncrOptions& options,
                    uint64_t user_data);
  absl::Status Touch(std::string_view key, std::chrono::milliseconds ttl,
                     const TouchOptions& options, uint64_t user_data);
  absl::Status GetAndTouch(std::string_view key, std::chrono::milliseconds ttl,
                           std::span<std::byte> out, uint64_t user_data);
  absl::Status Flush(uint32_t server, uint64_t user_data);
  // Tries once. Completion::found tells whether the lock was acquired.
  absl::Status TryLock(std::string_view key, uint64_t user_data, const LockOptions& options = {});
  absl::Status LockAndGet(std::string_view key, std::span<std::byte> out, uint64_t user_data,
                          const LockOptions& options = {});
  absl::Status Unlock(const Lock& lock, uint64_t user_data);
  // As Client::Extend.
  absl::Status Extend(const Lock& lock, std::chrono::milliseconds lease, uint64_t user_data);
  absl::Status Ping(uint32_t server, uint64_t user_data);
  // `out` must outlive the operation.
  absl::Status Stats(uint32_t server, ServerStats* out, uint64_t user_data);

  // Posts what was started, makes progress, and fills in finished operations. Never blocks.
  size_t Poll(std::span<Completion> out);

  // Like Poll. But if nothing is finished, it waits until something is, at most for `deadline`
  // (Options::wait says how). Returns 0 at the deadline. REQUIRES: `out` is not empty.
  size_t Wait(std::span<Completion> out, std::chrono::nanoseconds deadline);

  // For event loops. It is readable when Poll has something to do: a completion, a change of a
  // connection, a heartbeat or a deadline. It tells only what comes after Arm. The descriptor is
  // the same for the client's life. Only wait on it; do not read or close it.
  int fd() const;
  // Prepares to sleep until fd() is readable. Returns true if there is something to do: Poll and
  // Arm again before sleeping. Returns false if the caller may sleep. What came before Arm may make
  // fd() readable once in vain, as after ibv_req_notify_cq. The next Poll posts what is started
  // after Arm, so Arm must be the last call before sleeping. Once readable, fd() stays so until
  // Arm.
  bool Arm();

  // As Client's.
  absl::StatusOr<RegisteredMemory> Register(std::span<std::byte> memory,
                                            const RegisterOptions& options = {});
  absl::StatusOr<RegisteredMemory> AllocateMemory(uint64_t bytes);
  absl::StatusOr<RegisteredMemory> RegisterDmabuf(int fd, uint64_t offset, uint64_t bytes,
                                                  const RegisterOptions& options = {});

  // Sets the deadline of every operation that is started from now on.
  void set_deadline(std::chrono::milliseconds deadline);
  uint32_t in_flight() const;
  // Returns the index of the endpoint that owns a key, as far as the servers' names are known.
  uint32_t ServerOf(std::string_view key) const;
  std::vector<ServerInfo> Info() const;
  // How many servers, or groups of the cluster, there are now.
  uint32_t server_count() const;

 private:
  class State;
  explicit AsyncClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gannet

#endif  // GANNET_ASYNC_CLIENT_H_
