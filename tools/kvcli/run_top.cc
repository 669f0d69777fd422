// The verbs that look again and again.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "tools/kvcli/answers.h"
#include "tools/kvcli/hot_key_sampler.h"
#include "tools/kvcli/run_verbs.h"
#include "tools/kvcli/screen.h"
#include "tools/kvcli/top_change.h"
#include "tools/kvcli/top_view.h"

namespace gannet::kvcli {
namespace {

// Clients report twice a second unless the server has another --silence_ms.
constexpr std::chrono::seconds kWindow{5};
// So long the view may hang on a server that does not answer.
constexpr std::chrono::milliseconds kAnswerMax{1000};

// Returns what the server's clients do, without this one.
absl::Status ListOthers(Client& client, uint32_t server, uint32_t own_session,
                        std::chrono::milliseconds deadline, ServerLook* look) {
  auto connections = client.ConnectedClients(server, deadline);
  if (!connections.ok()) return connections.status();
  look->connections = *std::move(connections);
  std::erase_if(look->connections,
                [own_session](const ConnectedClient& it) { return it.session_id == own_session; });
  return absl::OkStatus();
}

std::vector<ServerLook> LookAtAll(Client& client, std::chrono::milliseconds deadline) {
  const std::vector<ServerReport> reports = client.Stats(deadline);
  const std::vector<ServerInfo> servers = client.Info();
  std::vector<ServerLook> looks(servers.size());
  for (uint32_t i = 0; i < servers.size(); ++i) {
    ServerLook& look = looks[i];
    look.endpoint = servers[i].endpoint;
    look.name = servers[i].name;
    look.incarnation = servers[i].incarnation;
    look.history = servers[i].history;
    look.epoch = servers[i].epoch;
    look.rails = servers[i].rails;
    absl::Status status = reports[i].stats.status();
    if (status.ok()) {
      look.stats = *reports[i].stats;
      status = ListOthers(client, i, servers[i].session_id, deadline, &look);
    }
    look.taken = std::chrono::nanoseconds(MonotonicNs());
    if (status.ok()) continue;
    look.problem = servers[i].why_not.empty() ? std::string(status.message()) : servers[i].why_not;
  }
  return looks;
}

// What `kvcli top` knows of its servers.
class TopLooks {
 public:
  // `hot_keys`: of so many keys of each server it tells how much they are used.
  TopLooks(Client& client, const Shell::Options& options, uint64_t hot_keys)
      : client_(client), deadline_(std::min(options.deadline, kAnswerMax)) {
    if (hot_keys == 0) return;
    for (const std::string& server : options.servers) {
      samplers_.push_back(std::make_unique<HotKeySampler>(server, options.connect, hot_keys));
    }
  }

  const std::vector<ServerChange>& Look() {
    std::vector<ServerLook> looks = LookAtAll(client_, deadline_);
    histories_.resize(looks.size(), TopHistory(kWindow));
    changes_.clear();
    for (size_t i = 0; i < looks.size(); ++i) {
      if (!samplers_.empty()) looks[i].hot_keys = samplers_[i]->Latest();
      changes_.push_back(histories_[i].Take(std::move(looks[i])));
    }
    return changes_;
  }
  const std::vector<ServerChange>& changes() const { return changes_; }
  bool any_problem() const {
    return std::ranges::any_of(
        changes_, [](const ServerChange& server) { return !server.now.problem.empty(); });
  }

 private:
  Client& client_;
  const std::chrono::milliseconds deadline_;
  std::vector<std::unique_ptr<HotKeySampler>> samplers_;  // of each server, or none
  std::vector<TopHistory> histories_;
  std::vector<ServerChange> changes_;
};

void TopOnScreen(Shell& shell, const Command& command, TopLooks& looks) {
  Screen screen;
  const auto draw = [&] { screen.Draw(TopView(looks.changes(), screen.Size())); };
  for (uint64_t left = command.count.value_or(UINT64_MAX); left > 0; --left) {
    const int64_t due_ns = MonotonicNs() + std::chrono::nanoseconds(command.interval).count();
    looks.Look();
    draw();
    for (;;) {
      const auto event = screen.Wait(std::chrono::nanoseconds(due_ns - MonotonicNs()));
      if (event == Screen::Event::kQuit || shell.interrupted()) return;
      if (event == Screen::Event::kTime) break;
      draw();
    }
  }
}

void TopInLines(Shell& shell, const Command& command, TopLooks& looks) {
  looks.Look();
  for (uint64_t left = command.count.value_or(UINT64_MAX); left > 0; --left) {
    if (!shell.Pause(command.interval)) return;
    const std::vector<ServerChange>& servers = looks.Look();
    if (shell.options().json) {
      shell.ShowJson(TopJson(servers));
    } else {
      for (const ViewLine& line : TopView(servers, kNoLimit))
        std::printf("%s\n", line.text.c_str());
      std::printf("\n");
    }
    if (!FlushAnswers()) return;  // main says why
  }
}

}  // namespace

int RunWatch(Shell& shell, const Command& command) {
  const std::string& key = command.keys[0];
  shell.BeginWait();
  std::optional<uint64_t> shown;  // version; 0 = absent
  for (uint64_t left = command.count.value_or(UINT64_MAX); left > 0;) {
    const auto value = shell.client().Get(key);
    if (!value.ok()) return shell.Report(value.status());
    const uint64_t version = value->has_value() ? (*value)->info.version : 0;
    if (version != shown) {
      shown = version;
      --left;
      if (version == 0) {
        if (shell.options().json) {
          shell.NotFound(key);
        } else {
          std::printf("0 (none)\n");
        }
      } else if (shell.options().json) {
        shell.ShowItem(key, **value, false);
      } else {
        std::printf("%s %s\n", std::to_string(version).c_str(), Escaped((*value)->data).c_str());
      }
      if (!FlushAnswers()) return kExitError;  // main says why
    }
    if (left > 0 && !shell.Pause(command.every)) return kExitDone;
  }
  return kExitDone;
}

int RunTop(Shell& shell, const Command& command) {
  TopLooks looks(shell.client(), shell.options(), command.hot_keys);
  shell.BeginWait();
  if (!shell.options().json && Screen::IsThere()) {
    TopOnScreen(shell, command, looks);
  } else {
    TopInLines(shell, command, looks);
  }
  return looks.any_problem() ? kExitError : kExitDone;
}

}  // namespace gannet::kvcli
