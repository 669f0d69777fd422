#ifndef GANNET_CLIENT_RAW_READ_H_
#define GANNET_CLIENT_RAW_READ_H_

#include <gannet/async_client.h>
#include <gannet/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet {

// The floor under a GET, for measuring: bare RDMA READs of one server's region, posted and polled
// exactly as AsyncClient does (same connection settings, chaining, signalling), with none of the
// store's logic. Not part of the installed library.
//
// One owner thread, which must Poll as AsyncClient's does.
class RawReader {
 public:
  // As AsyncClient::Connect.
  static absl::StatusOr<std::unique_ptr<RawReader>> Connect(std::string endpoint,
                                                            Options options = {});
  ~RawReader();
  RawReader(const RawReader&) = delete;
  RawReader& operator=(const RawReader&) = delete;

  // Offsets below this may be READ.
  uint64_t region_bytes() const;
  // Starts a READ of `bytes` at `offset` from the region's base. InvalidArgument: outside the
  // region, or more than a 1 MiB item's bytes. ResourceExhausted: Options::depth READs are in
  // flight, poll first.
  absl::Status Read(uint64_t offset, uint32_t bytes, uint64_t user_data);
  // As AsyncClient::Poll; the bytes READ stay in the client's own memory.
  size_t Poll(std::span<Completion> out);
  uint32_t in_flight() const;

 private:
  class State;
  explicit RawReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_RAW_READ_H_
