#ifndef GANNET_TOOLS_KVLOAD_RAW_READ_BACKEND_H_
#define GANNET_TOOLS_KVLOAD_RAW_READ_BACKEND_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/auth/auth_key.h"
#include "common/protocol/connect.h"
#include "common/rdma/completion.h"
#include "common/rdma/connector.h"
#include "common/rdma/handle.h"
#include "common/rdma/memory.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/random.h"

namespace gannet::kvload {

// The floor: bare RDMA READs of a server's region at random places, without store logic and without
// a copy. It connects as the client does. The READs that are started between two Polls go out as
// chains of up to kChainMax, with one doorbell and one completion each.
//
// Gets only find out where the items of keys are. After Gets, READs go to these items instead, in
// the order of the Gets, over and over. So they can be compared with GETs of the same keys.
//
// One owner thread. It must Poll, because Poll also sends the heartbeats that keep the session
// alive.
class RawReadBackend : public Backend {
 public:
  struct Options {
    std::string endpoint;
    std::string auth_file = {};  // empty: no key
    uint32_t depth = 1;
    uint32_t read_bytes = 64;
    uint64_t span_bytes = 0;  // READs use so many bytes from the region's beginning; 0 = all
    uint64_t seed = 0;
    std::chrono::milliseconds connect_timeout{3000};
  };
  // Blocks until connected. Unavailable, DeadlineExceeded, FailedPrecondition: it cannot connect.
  // InvalidArgument: the region or its span is smaller than a READ.
  static absl::StatusOr<std::unique_ptr<RawReadBackend>> Connect(const Options& options);
  ~RawReadBackend() override;

  // Notes the place of the key's item, from the first slot of its window that has the key's tag. If
  // there is none, notes the place of the window itself and completes as not found. Blocks for a
  // READ.
  absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) override;
  absl::Status Put(std::string_view, std::string_view, std::chrono::milliseconds,
                   uint64_t) override {
    return absl::UnimplementedError("raw reads only");
  }
  // Leaves the bytes in the backend's own buffer, sinks().
  absl::Status RawRead(std::span<std::byte> out, uint64_t user_data) override;
  size_t Poll(std::span<Completion> out) override;
  // The buffer for the READs' bytes, with a place for each READ that may be in flight.
  std::span<const std::byte> sinks() const { return sinks_.bytes; }
  // Returns the spread of the items that Gets noted, or an empty one.
  Spread spread() const override;

  static constexpr uint32_t kChainMax = 16;

 private:
  // READs that complete together, with the last of them.
  struct Chain {
    uint32_t size = 0;
    uint64_t user_data[kChainMax];
    uint64_t addresses[kChainMax];
    uint32_t sinks[kChainMax];
  };

  explicit RawReadBackend(const Options& options);
  absl::Status Establish();
  absl::Status WaitWhile(Connector::Step step, int64_t deadline_ns);
  absl::Status MakeResources();
  absl::Status Adopt(const ConnectRequest& request, const std::optional<AuthKey>& key);
  // READs a window into window_, and waits for it.
  absl::Status ReadWindow(uint64_t address);
  uint64_t NextAddress();
  void PostChain();
  void KeepAlive();
  void HandleCompletion(const ibv_wc& wc);
  void Break();
  void Finish(const Chain& chain, absl::StatusCode code);

  const Options options_;
  Random random_;
  Grant grant_{};
  uint64_t span_bytes_ = 0;

  // In this order, because destruction needs the reverse one.
  Handle<ibv_pd> pd_;
  std::unique_ptr<CompletionQueue> queue_;
  RegisteredBuffer sinks_;
  RegisteredBuffer window_;
  RegisteredBuffer messages_;  // receives, then the heartbeat
  std::unique_ptr<Connector> connector_;

  std::vector<Chain> chains_;
  // The last one is being filled. Every chain in flight holds a sink, so as many chains as sinks
  // are enough.
  std::vector<uint32_t> free_chains_;
  std::vector<uint32_t> free_sinks_;
  std::vector<uint64_t> items_;  // addresses that Gets noted
  size_t next_item_ = 0;
  bool window_read_ = false;
  std::vector<Completion> finished_;  // not returned by Poll yet
  std::vector<ibv_wc> wcs_;
  bool heartbeat_in_flight_ = false;
  int64_t heartbeat_ns_ = 0;
  uint32_t polls_ = 0;
  bool broken_ = false;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_RAW_READ_BACKEND_H_
