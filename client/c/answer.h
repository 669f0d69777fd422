#ifndef GANNET_CLIENT_C_ANSWER_H_
#define GANNET_CLIENT_C_ANSWER_H_

#include <gannet/gannet.h>
#include <gannet/registered_memory.h>
#include <gannet/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gannet {

// From what the C++ API answers to the structures of C. What is allocated here is freed by
// gannet_free or gannet_memory_free.

gannet_item_info MakeInfo(const ItemInfo& info);
// ResourceExhausted: there is no memory for the copy.
absl::Status CopyValue(std::string_view data, const ItemInfo& info, gannet_value* out);

// Fills in as much as out->size says. InvalidArgument: out->size is wrong.
absl::Status WriteStats(const absl::StatusOr<ServerStats>& stats, gannet_stats* out);
// The strings lie behind the structure, in the same memory.
gannet_status WriteServerInfo(const std::vector<ServerInfo>& infos, uint32_t server,
                              gannet_server_info** out);
gannet_status WriteHeldLocks(const std::vector<HeldLock>& locks, gannet_held_lock** out,
                             size_t* count);

// A gannet_memory is a RegisteredMemory, and a gannet_span is laid out as a RegisteredSpan, so an
// array of them is used as it is: an asynchronous operation needs the array until it completes.
std::span<const RegisteredSpan> AsSpans(const gannet_span* spans, size_t count);
gannet_status WriteMemory(absl::StatusOr<RegisteredMemory> memory, gannet_memory** out);

// Returns the status of an answer that may be "there is none". Fills in `out` if there is one, and
// makes it zero if not.
gannet_status WriteInfo(const absl::StatusOr<std::optional<ItemInfo>>& info, gannet_item_info* out);

}  // namespace gannet

#endif  // GANNET_CLIENT_C_ANSWER_H_
