#ifndef GANNET_TOOLS_KVLOAD_GANNET_BACKEND_H_
#define GANNET_TOOLS_KVLOAD_GANNET_BACKEND_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/options.h"
#include "tools/kvload/phase.h"

namespace gannet::kvload {

// Gannet through its public asynchronous client. One owner thread.
class GannetBackend : public Backend {
 public:
  static absl::StatusOr<std::unique_ptr<GannetBackend>> Connect(const Options& options);

  absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) override {
    return client_->Get(key, out, user_data);
  }
  absl::Status Put(std::string_view key, std::string_view value, uint64_t user_data) override {
    return client_->Put(key, value, {}, user_data);
  }
  absl::Status RawRead(std::span<std::byte>, uint64_t) override {
    return absl::UnimplementedError("the client has no bare READs");
  }
  size_t Poll(std::span<Completion> out) override { return client_->Poll(out); }

 private:
  explicit GannetBackend(std::unique_ptr<AsyncClient> client) : client_(std::move(client)) {}
  std::unique_ptr<AsyncClient> client_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_GANNET_BACKEND_H_
