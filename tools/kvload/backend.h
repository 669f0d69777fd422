#ifndef GANNET_TOOLS_KVLOAD_BACKEND_H_
#define GANNET_TOOLS_KVLOAD_BACKEND_H_

#include <gannet/async_client.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace gannet::kvload {

// What one thread of a load run drives: many operations in flight, finished ones by polling. One
// owner thread. A key, buffer or value must stay as it is until its operation is finished.
class Backend {
 public:
  virtual ~Backend() = default;
  // Each starts one operation; an error means that it was not started.
  virtual absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) = 0;
  virtual absl::Status Put(std::string_view key, std::string_view value, uint64_t user_data) = 0;
  virtual absl::Status RawRead(std::span<std::byte> out, uint64_t user_data) = 0;
  // Makes progress and fills in finished operations. Never blocks.
  virtual size_t Poll(std::span<Completion> out) = 0;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_BACKEND_H_
