#include "client/api/connect_engine.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/api/requests.h"
#include "client/engine/wake_fd.h"
#include "common/base/server_list.h"
#include "common/base/status_macros.h"
#include "common/protocol/partition_map.h"

namespace gannet {
namespace {

// A map that changes while it is read is read again. Maps change seldom.
constexpr int kTriesMax = 10;
// While a cluster starts, not all of its members are known everywhere.
constexpr int64_t kPauseNs = 20 * kNsPerMs;

// An engine that is not used by others yet, and what wakes who waits for it.
class NewEngine {
 public:
  static absl::StatusOr<NewEngine> Create(Engine::Settings settings, int64_t deadline_ns) {
    GANNET_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Create(std::move(settings)));
    GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WakeFd> wake, WakeFd::Create());
    return NewEngine(std::move(engine), std::move(wake), deadline_ns);
  }

  // Waits until the engine can start.
  absl::Status Start() {
    std::optional<absl::Status> status;
    PollUntil([&](bool last_call) {
      status = engine_->servers().StartStatus(last_call);
      return status.has_value();
    });
    return *status;
  }

  // Returns the map of the cluster that the server belongs to, or nullopt if it is in none, or does
  // not know maps. REQUIRES: Start returned OK.
  absl::StatusOr<std::optional<PartitionMap>> AskForMap(uint32_t server) {
    for (int tries = 0; tries < kTriesMax; ++tries) {
      GANNET_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, AskForBytes(server));
      if (!bytes) return std::optional<PartitionMap>();
      if (auto map = DecodePartitionMap(*bytes)) return std::optional(*std::move(map));
    }
    return absl::InternalError("the server's map of its cluster cannot be read");
  }

  // Lets some time pass. Returns false if the deadline is over.
  bool Pause() {
    const int64_t left_ns = deadline_ns_ - engine_->clock().MonotonicNs();
    if (left_ns <= 0) return false;
    WakeFd::Sleep(wake_->fd(), std::min(left_ns, kPauseNs));
    return true;
  }

  Engine& engine() { return *engine_; }
  std::unique_ptr<Engine> Take() && { return std::move(engine_); }

 private:
  NewEngine(std::unique_ptr<Engine> engine, std::unique_ptr<WakeFd> wake, int64_t deadline_ns)
      : engine_(std::move(engine)), wake_(std::move(wake)), deadline_ns_(deadline_ns) {}

  // Polls until done(last_call). REQUIRES: done(true).
  template <class F>
  void PollUntil(F done) {
    for (;;) {
      const int64_t now_ns = engine_->clock().MonotonicNs();
      engine_->Poll(now_ns);
      if (done(now_ns >= deadline_ns_)) return;
      // Arm polls once more. That Poll may bring what this waits for.
      if (wake_->Arm(*engine_, now_ns) || done(false)) continue;
      WakeFd::Sleep(wake_->fd(), deadline_ns_ - now_ns);
    }
  }

  // Returns nullopt if the server has no map.
  absl::StatusOr<std::optional<std::string>> AskForBytes(uint32_t server) {
    std::string bytes;
    for (uint64_t from = 0, next = 0;; from = next) {
      GANNET_ASSIGN_OR_RETURN(OpRequest request, ServerRequest(*engine_, OpType::kMap, server));
      request.position = from;
      request.timeout_ns = std::max<int64_t>(deadline_ns_ - engine_->clock().MonotonicNs(), 0);
      const uint32_t number = engine_->Begin(request);
      uint32_t finished = kInvalidOp;
      // It ends at the deadline by itself.
      PollUntil([&](bool) {
        if (finished == kInvalidOp) finished = engine_->NextFinished();
        return finished != kInvalidOp;
      });
      const Op& op = engine_->op(number);
      const Outcome outcome = op.outcome;
      const absl::Status status = MakeStatus(*engine_, op);
      bytes.append(reinterpret_cast<const char*>(op.value.data()), op.value.size());
      next = op.next_position;
      engine_->Release(number);
      if (outcome == Outcome::kUnimplemented) return std::nullopt;
      if (!status.ok()) return status;
      if (bytes.empty()) return std::nullopt;  // status 1: in no cluster
      if (next == 0) return bytes;
      if (next <= from || bytes.size() > kPartitionMapBytesMax) {
        return absl::InternalError("the server's map of its cluster does not end");
      }
    }
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<WakeFd> wake_;
  int64_t deadline_ns_;
};

// Returns the map, if the servers are of a cluster of several groups. If there is one group, tells
// its session of all members, before the one that was listed can die.
absl::StatusOr<std::optional<PartitionMap>> MapOfSeveral(NewEngine& made) {
  ServerSet& servers = made.engine().servers();
  for (uint32_t server = 0; server < servers.size(); ++server) {
    const ClientSession& session = servers.session(server);
    if (!session.ready() || session.grant().history == 0) continue;  // 0: in no group
    GANNET_ASSIGN_OR_RETURN(std::optional<PartitionMap> map, made.AskForMap(server));
    if (!map) continue;
    // If the map of one group was changed, its leases are for those who know that map.
    if (map->groups.size() == 1 && map->revision == 0) {
      servers.LearnMembers(server, map->groups[0].addresses);
      continue;
    }
    if (servers.size() == 1) return map;
    return absl::InvalidArgumentError(
        absl::StrCat(session.endpoint(), " is a group of a cluster of ", map->groups.size(),
                     " groups. Name no other servers beside it: one member is enough to find all"));
  }
  return std::nullopt;
}

// Lets the engine have a server for each group.
absl::Status TakeGroups(const PartitionMap& map, Engine::Settings* settings) {
  settings->endpoints.clear();
  for (const PartitionMap::Group& group : map.groups) {
    if (group.addresses.empty()) {
      return absl::UnavailableError(
          absl::StrCat("no member of the cluster's group ", group.name, " has been started yet"));
    }
    settings->endpoints.push_back(
        absl::StrCat(std::string(kGroupPrefix), absl::StrJoin(group.addresses, ",")));
  }
  settings->map = map;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> ConnectEngine(Engine::Settings settings) {
  const int64_t deadline_ns =
      settings.clock->MonotonicNs() + TimeoutNs(settings.options.connect_timeout);
  GANNET_ASSIGN_OR_RETURN(NewEngine made, NewEngine::Create(settings, deadline_ns));
  GANNET_RETURN_IF_ERROR(made.Start());
  for (;;) {
    GANNET_ASSIGN_OR_RETURN(const std::optional<PartitionMap> map, MapOfSeveral(made));
    if (!map) return std::move(made).Take();
    const absl::Status taken = TakeGroups(*map, &settings);
    if (taken.ok()) break;
    if (!made.Pause()) return taken;
  }
  GANNET_ASSIGN_OR_RETURN(NewEngine all, NewEngine::Create(std::move(settings), deadline_ns));
  GANNET_RETURN_IF_ERROR(all.Start());
  return std::move(all).Take();
}

}  // namespace gannet
