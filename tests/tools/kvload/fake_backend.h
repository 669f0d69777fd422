#ifndef GANNET_TESTS_TOOLS_KVLOAD_FAKE_BACKEND_H_
#define GANNET_TESTS_TOOLS_KVLOAD_FAKE_BACKEND_H_

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <string>

#include "tools/kvload/backend.h"

namespace gannet::kvload {

// A store in this process, to drive operation loops without a server. It answers in order, one Poll
// later, at a cost of one READ per GET and one SEND per PUT.
class FakeBackend : public Backend {
 public:
  explicit FakeBackend(std::map<std::string, std::string>& items) : items_(items) {}

  absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) override {
    Completion done{.user_data = user_data, .type = OpType::kGet, .code = code};
    done.cost = {.read_bytes = 128, .reads = 1, .posts = 1, .completions = 1};
    const auto item = items_.find(std::string(key));
    done.found = item != items_.end();
    if (done.found) {
      done.info.value_bytes = static_cast<uint32_t>(item->second.size());
      done.cost.from_cached_location = warm;
      std::memcpy(out.data(), item->second.data(), std::min(out.size(), item->second.size()));
    }
    return Start(done);
  }

  absl::Status Put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                   uint64_t user_data) override {
    last_ttl = ttl;
    if (code == absl::StatusCode::kOk) items_[std::string(key)] = value;
    Completion done{.user_data = user_data, .type = OpType::kPut, .code = code};
    done.cost = {.sends = 1, .posts = 1, .completions = 2};
    return Start(done);
  }

  absl::Status RawRead(std::span<std::byte> out, uint64_t user_data) override {
    Completion done{.user_data = user_data, .code = code};
    done.cost = {
        .read_bytes = static_cast<uint32_t>(out.size()), .reads = 1, .posts = 1, .completions = 1};
    return Start(done);
  }

  size_t Poll(std::span<Completion> out) override {
    if (!why_lost.empty()) return 0;
    const size_t n = std::min(out.size(), pending_.size());
    for (size_t i = 0; i < n; ++i) {
      out[i] = pending_.front();
      pending_.pop_front();
    }
    return n;
  }

  std::string_view lost() const override { return why_lost; }

  std::string why_lost;                           // while it is set, nothing is answered
  absl::StatusCode code = absl::StatusCode::kOk;  // of every completion
  bool refuse = false;                            // to start anything
  bool warm = false;                              // locations are known
  size_t in_flight_max = 0;
  std::chrono::milliseconds last_ttl{0};  // of a PUT

 private:
  absl::Status Start(const Completion& done) {
    if (refuse) return absl::UnavailableError("refused");
    pending_.push_back(done);
    in_flight_max = std::max(in_flight_max, pending_.size());
    return absl::OkStatus();
  }

  std::map<std::string, std::string>& items_;
  std::deque<Completion> pending_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TESTS_TOOLS_KVLOAD_FAKE_BACKEND_H_
