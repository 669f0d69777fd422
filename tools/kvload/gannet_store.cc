#include "tools/kvload/gannet_store.h"

#include <gannet/client.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "tools/kvload/loss_watch.h"
#include "tools/kvload/raw_read_backend.h"

namespace gannet::kvload {
namespace {

class GannetBackend : public Backend {
 public:
  // REQUIRES: the client's Options::log calls watch->Log.
  GannetBackend(std::unique_ptr<AsyncClient> client, std::shared_ptr<LossWatch> watch,
                uint32_t value_bytes, bool waits)
      : client_(std::move(client)),
        watch_(std::move(watch)),
        value_bytes_(value_bytes),
        waits_(waits) {
    watch_->Begin(client_->Info());
  }

  absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) override {
    if (!memory_) return client_->Get(key, out, user_data);
    return client_->GetInto(key, SpanOf(out.data(), out.size(), user_data), user_data);
  }
  absl::Status Put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                   uint64_t user_data) override {
    if (!memory_ || value.empty()) return client_->Put(key, value, {.ttl = ttl}, user_data);
    const auto* bytes = reinterpret_cast<const std::byte*>(value.data());
    return client_->PutFrom(key, SpanOf(bytes, value.size(), user_data), {.ttl = ttl}, user_data);
  }
  absl::Status StartChange(const Change& change, uint64_t user_data) override {
    switch (change.kind) {
      case OpKind::kCas:
        return client_->Put(change.key, change.value,
                            {.ttl = change.ttl, .only_if_version = change.version}, user_data);
      case OpKind::kAdd:
        return client_->Add(change.key, change.value, {.ttl = change.ttl}, user_data);
      case OpKind::kReplace:
        return client_->Replace(change.key, change.value, {.ttl = change.ttl}, user_data);
      case OpKind::kDelete:
        return client_->Delete(change.key, {}, user_data);
      case OpKind::kIncr:
        return client_->Incr(change.key, 1, {.ttl = change.ttl}, user_data);
      case OpKind::kDecr:
        return client_->Decr(change.key, 1, {.ttl = change.ttl}, user_data);
      case OpKind::kAppend:
        return client_->Append(change.key, change.value, {.ttl = change.ttl}, user_data);
      case OpKind::kPrepend:
        return client_->Prepend(change.key, change.value, {.ttl = change.ttl}, user_data);
      case OpKind::kTouch:
        return client_->Touch(change.key, change.ttl, {}, user_data);
      case OpKind::kGetAndTouch:
        return client_->GetAndTouch(change.key, change.ttl, change.out, user_data);
      default:
        return Backend::StartChange(change, user_data);
    }
  }
  std::span<std::byte> Memory(uint64_t bytes) override {
    if (value_bytes_ <= kCopiedBytesMax) return {};
    if (memory_ && memory_->size() >= bytes) return {memory_->data(), memory_->size()};
    absl::StatusOr<RegisteredMemory> memory = client_->AllocateMemory(bytes);
    if (!memory.ok()) return {};  // then values are copied
    memory_ = *std::move(memory);
    return {memory_->data(), memory_->size()};
  }
  size_t Poll(std::span<Completion> out) override { return Counted(client_->Poll(out)); }
  size_t Wait(std::span<Completion> out, int64_t deadline_ns) override {
    return Counted(client_->Wait(out, std::chrono::nanoseconds(deadline_ns)));
  }
  std::string_view lost() const override { return watch_->lost(); }
  bool away() const override { return watch_->away(); }
  uint64_t fail_overs() const override { return watch_->fail_overs(); }
  std::map<std::string, uint64_t> rail_works() const override {
    std::map<std::string, uint64_t> works;
    for (const ServerInfo& info : client_->Info()) {
      for (const RailInfo& rail : info.rails) works[rail.address] += rail.works;
    }
    return works;
  }
  uint64_t near_cache_reads() const override {
    uint64_t reads = 0;
    for (const ServerInfo& info : client_->Info()) reads += info.near_cache_reads;
    return reads;
  }

 private:
  // Returns how many of `done` answers count: none if the server is lost, unless the run waits for
  // it. A restarted server's answers would not be about the loaded data.
  size_t Counted(size_t done) {
    if (!watch_->troubled()) [[likely]]
      return done;
    watch_->Look(client_->Info(), MonotonicNs());
    return watch_->lost().empty() || waits_ ? done : 0;
  }

  // Returns the span of memory_ for the operation in this slot.
  std::span<const RegisteredSpan> SpanOf(const std::byte* data, size_t bytes, uint64_t slot) {
    if (slot >= spans_.size()) spans_.resize(slot + 1);
    spans_[slot] = {*memory_, static_cast<uint64_t>(data - memory_->data()), bytes};
    return {&spans_[slot], 1};
  }

  // Longer values are read and written without a copy.
  static constexpr uint32_t kCopiedBytesMax = 4000;

  const std::unique_ptr<AsyncClient> client_;
  const std::shared_ptr<LossWatch> watch_;
  const uint32_t value_bytes_;  // the longest
  std::optional<RegisteredMemory> memory_;
  std::deque<RegisteredSpan> spans_;  // by slot; a deque, since spans must not move
  const bool waits_;                  // the run waits for a lost server, so all answers count
};

gannet::Options ClientOptions(const LoadOptions& options) {
  gannet::Options client;
  client.device = options.device;
  client.auth_file = options.auth_file;
  client.deadline = options.deadline;
  // The connection manager sends a lost packet again after four seconds. If an operation may take
  // that long, connecting may too.
  client.connect_timeout = std::max(client.connect_timeout, options.deadline);
  client.wait = options.wait;
  return client;
}

// Returns HOST:PORT of NAME@HOST:PORT.
std::string AddressOf(const std::string& endpoint) {
  return endpoint.substr(endpoint.rfind('@') + 1);
}

absl::StatusOr<ServerTotals> AskForTotals(Client& client) {
  ServerTotals totals;
  for (const ServerReport& report : client.Stats()) {
    GANNET_RETURN_IF_ERROR(report.stats.status());  // totals must cover all servers
    const ServerStats& server = *report.stats;
    totals.rpcs += server.rpcs;
    totals.cpu_us += server.cpu_us;
    totals.reply_posts += server.reply_posts;
    totals.receive_posts += server.receive_posts;
    totals.send_completions += server.send_completions;
    totals.disk_answers += server.tier_reads + server.tier_reads_joined - server.tier_reads_failed;
    totals.slots_used += server.slots_used;
    totals.slots_total += server.slots_total;
  }
  return totals;
}

class GannetStore : public StoreUnderLoad {
 public:
  static absl::StatusOr<std::unique_ptr<StoreUnderLoad>> Open(const LoadOptions& options) {
    GANNET_ASSIGN_OR_RETURN(auto client, Client::Connect(options.servers, ClientOptions(options)));
    GANNET_ASSIGN_OR_RETURN(const ServerTotals first, AskForTotals(*client));
    GANNET_ASSIGN_OR_RETURN(const ServerTotals second, AskForTotals(*client));
    return std::unique_ptr<StoreUnderLoad>(
        new GannetStore(options, std::move(client), second.rpcs - first.rpcs));
  }

  absl::StatusOr<std::unique_ptr<Backend>> Connect(uint32_t thread) override {
    if (options_.workload == kRawReadWorkload) {
      return RawReadBackend::Connect({.endpoint = AddressOf(options_.servers.front()),
                                      .auth_file = options_.auth_file,
                                      .depth = options_.depth,
                                      .read_bytes = options_.sizes.value_bytes,
                                      .span_bytes = options_.raw_span_bytes,
                                      .seed = options_.seed + thread});
    }
    gannet::Options client = ClientOptions(options_);
    client.depth = options_.depth;
    client.location_cache_bytes = LocationCacheBytesOfThread(options_);
    client.rails = options_.rails;
    client.near_cache_bytes = options_.near_cache_bytes / options_.threads;
    auto watch = std::make_shared<LossWatch>(options_.waits_for_server);
    client.log = [watch](LogLevel level, std::string_view line) {
      watch->Log(level, line, MonotonicNs());
    };
    GANNET_ASSIGN_OR_RETURN(auto connected, AsyncClient::Connect(options_.servers, client));
    // The values of a trace have all sizes. Most are short, and those are copied anyway.
    const uint32_t value_bytes = options_.trace_file.empty() ? options_.sizes.value_bytes : 0;
    return std::make_unique<GannetBackend>(std::move(connected), std::move(watch), value_bytes,
                                           options_.waits_for_server);
  }

  absl::StatusOr<ServerTotals> Totals() override {
    GANNET_ASSIGN_OR_RETURN(ServerTotals totals, AskForTotals(*client_));
    totals.rpcs -= asked_++ * rpcs_of_asking_;
    return totals;
  }

  Transport transport() const override {
    const std::vector<ServerInfo> infos = client_->Info();
    const auto connected = std::ranges::find(infos, true, &ServerInfo::connected);
    const ServerInfo& info = connected != infos.end() ? *connected : infos.front();
    return {info.device, info.kind};
  }

 private:
  GannetStore(const LoadOptions& options, std::unique_ptr<Client> client, uint64_t rpcs_of_asking)
      : options_(options), client_(std::move(client)), rpcs_of_asking_(rpcs_of_asking) {}

  const LoadOptions options_;
  const std::unique_ptr<Client> client_;
  const uint64_t rpcs_of_asking_;  // RPCs that one AskForTotals adds to the totals
  uint64_t asked_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StoreUnderLoad>> OpenGannet(const LoadOptions& options) {
  return GannetStore::Open(options);
}

}  // namespace gannet::kvload
