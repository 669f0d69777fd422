#include "tools/kvload/memcached_store.h"

#include <libmemcached/memcached.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tools/kvload/host_and_port.h"

namespace gannet::kvload {
namespace {

struct MemcachedFree {
  void operator()(memcached_st* memcached) const { memcached_free(memcached); }
  void operator()(memcached_result_st* result) const { memcached_result_free(result); }
  void operator()(memcached_stat_st* stats) const { memcached_stat_free(nullptr, stats); }
};
using MemcachedConnection = std::unique_ptr<memcached_st, MemcachedFree>;

absl::StatusOr<MemcachedConnection> ConnectToMemcached(const LoadOptions& options) {
  const std::string& server = options.servers.front();
  GANNET_ASSIGN_OR_RETURN(const HostAndPort to, ParseHostAndPort(server));
  MemcachedConnection connection(memcached_create(nullptr));
  memcached_st* memcached = connection.get();
  memcached_behavior_set(memcached, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
  memcached_behavior_set(memcached, MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, 3000);
  memcached_behavior_set(memcached, MEMCACHED_BEHAVIOR_POLL_TIMEOUT,
                         static_cast<uint64_t>(options.deadline.count()));
  memcached_return_t code = memcached_server_add(memcached, to.host.c_str(), to.port);
  if (code == MEMCACHED_SUCCESS) code = memcached_version(memcached);
  if (code == MEMCACHED_SUCCESS) return connection;
  return absl::UnavailableError(
      absl::StrCat("no memcached at ", server, ": ",
                   memcached_strerror(memcached, memcached_last_error(memcached)),
                   "; start one with: memcached -l ", to.host, " -p ", to.port));
}

class MemcachedBackend : public Backend {
 public:
  explicit MemcachedBackend(MemcachedConnection connection) : connection_(std::move(connection)) {
    memcached_behavior_set(connection_.get(), MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, 1);
    memcached_behavior_set(connection_.get(), MEMCACHED_BEHAVIOR_NOREPLY, 1);
    memcached_result_create(connection_.get(), &result_);
  }
  ~MemcachedBackend() override { memcached_result_free(&result_); }

  absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) override {
    gets_.push_back({key, out, user_data});
    return absl::OkStatus();
  }

  // Lives are whole seconds there, and numbers above 30 days are points in time.
  absl::Status Put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                   uint64_t user_data) override {
    const time_t ttl_s =
        std::min<time_t>(std::chrono::ceil<std::chrono::seconds>(ttl).count(), kTtlMax);
    const memcached_return_t code = memcached_set(connection_.get(), key.data(), key.size(),
                                                  value.data(), value.size(), ttl_s, 0);
    if (code != MEMCACHED_SUCCESS && code != MEMCACHED_BUFFERED) {
      return absl::UnavailableError(memcached_strerror(connection_.get(), code));
    }
    puts_.push_back(user_data);
    last_put_ = key;
    return absl::OkStatus();
  }

  size_t Poll(std::span<Completion> out) override {
    if (finished_.empty() && !(gets_.empty() && puts_.empty())) ExchangeBatch();
    size_t done = 0;
    for (; done < out.size() && !finished_.empty(); finished_.pop_front()) {
      out[done++] = finished_.front();
    }
    return done;
  }

 private:
  struct PendingGet {
    std::string_view key;
    std::span<std::byte> out;
    uint64_t user_data;
  };

  void ExchangeBatch() {
    keys_.clear();
    sizes_.clear();
    const auto ask_for = [this](std::string_view key) {
      keys_.push_back(key.data());
      sizes_.push_back(key.size());
    };
    for (const PendingGet& get : gets_) ask_for(get.key);
    if (gets_.empty()) ask_for(last_put_);
    memcached_return_t code =
        memcached_mget(connection_.get(), keys_.data(), sizes_.data(), keys_.size());
    if (code == MEMCACHED_SUCCESS) code = TakeAnswers();
    // GETs without an answer missed, or failed with the connection.
    FinishGetsBefore(gets_.size(), code);
    for (const uint64_t user_data : puts_) {
      finished_.push_back({.user_data = user_data, .type = OpType::kPut, .code = CodeOf(code)});
    }
    gets_.clear();
    puts_.clear();
    answered_ = 0;
  }

  // Values arrive in the order of the keys. Missing keys are left out.
  memcached_return_t TakeAnswers() {
    memcached_return_t code;
    while (memcached_fetch_result(connection_.get(), &result_, &code) != nullptr) {
      const std::string_view key(memcached_result_key_value(&result_),
                                 memcached_result_key_length(&result_));
      size_t at = answered_;
      while (at < gets_.size() && gets_[at].key != key) ++at;
      if (at == gets_.size()) continue;  // the key that acknowledges a batch of PUTs
      FinishGetsBefore(at, MEMCACHED_SUCCESS);
      FinishHit(gets_[answered_++]);
    }
    return code == MEMCACHED_END || code == MEMCACHED_NOTFOUND ? MEMCACHED_SUCCESS : code;
  }

  void FinishHit(const PendingGet& get) {
    const size_t size = memcached_result_length(&result_);
    std::copy_n(memcached_result_value(&result_), std::min(size, get.out.size()),
                reinterpret_cast<char*>(get.out.data()));
    Completion done{.user_data = get.user_data, .found = true};
    done.info.value_bytes = static_cast<uint32_t>(size);
    finished_.push_back(done);
  }

  void FinishGetsBefore(size_t end, memcached_return_t code) {
    for (; answered_ < end; ++answered_) {
      finished_.push_back({.user_data = gets_[answered_].user_data, .code = CodeOf(code)});
    }
  }

  static absl::StatusCode CodeOf(memcached_return_t code) {
    return code == MEMCACHED_SUCCESS   ? absl::StatusCode::kOk
           : code == MEMCACHED_TIMEOUT ? absl::StatusCode::kDeadlineExceeded
                                       : absl::StatusCode::kUnavailable;
  }

  static constexpr time_t kTtlMax = 30 * 86400;

  const MemcachedConnection connection_;
  memcached_result_st result_;
  std::vector<PendingGet> gets_;
  std::vector<uint64_t> puts_;
  std::string_view last_put_;
  size_t answered_ = 0;  // how many of gets_ are finished; used only within ExchangeBatch
  std::vector<const char*> keys_;
  std::vector<size_t> sizes_;
  std::deque<Completion> finished_;  // not returned by Poll yet
};

class MemcachedStore : public StoreUnderLoad {
 public:
  MemcachedStore(const LoadOptions& options, MemcachedConnection connection)
      : options_(options), connection_(std::move(connection)) {}

  absl::StatusOr<std::unique_ptr<Backend>> Connect(uint32_t) override {
    GANNET_ASSIGN_OR_RETURN(MemcachedConnection connection, ConnectToMemcached(options_));
    return std::make_unique<MemcachedBackend>(std::move(connection));
  }

  absl::StatusOr<ServerTotals> Totals() override {
    memcached_return_t code;
    const std::unique_ptr<memcached_stat_st, MemcachedFree> stats(
        memcached_stat(connection_.get(), nullptr, &code));
    if (stats == nullptr || code != MEMCACHED_SUCCESS) {
      return absl::UnavailableError("memcached does not answer stats");
    }
    ServerTotals totals;
    totals.rpcs = stats->cmd_get + stats->cmd_set;
    totals.cpu_us = (stats->rusage_user_seconds + stats->rusage_system_seconds) * 1'000'000 +
                    stats->rusage_user_microseconds + stats->rusage_system_microseconds;
    return totals;
  }

  Transport transport() const override { return {"tcp", "kernel-tcp"}; }

 private:
  const LoadOptions options_;
  const MemcachedConnection connection_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StoreUnderLoad>> OpenMemcached(const LoadOptions& options) {
  GANNET_ASSIGN_OR_RETURN(MemcachedConnection connection, ConnectToMemcached(options));
  auto store = std::make_unique<MemcachedStore>(options, std::move(connection));
  GANNET_RETURN_IF_ERROR(store->Totals().status());
  return store;
}

}  // namespace gannet::kvload
