// many_sessions SERVER SESSIONS OPERATIONS: measures the cost of GETs and PUTs of 64 bytes by
// SESSIONS connected clients. All clients run on one thread, each with one operation at a time.
// They remember no locations, so every GET is cold. Prints JSON on stdout.

#include <gannet/async_client.h>
#include <sched.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace gannet {
namespace {

constexpr uint64_t kKeys = 10'000;
constexpr int kConnectTriesMax = 100;

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "many_sessions: %s\n", status.ToString().c_str());
  std::exit(1);
}

struct Costs {
  uint64_t operations = 0, reads = 0, read_bytes = 0, sends = 0, posts = 0, completions = 0;
  int64_t ns = 0;

  void Add(const OpCost& cost) {
    ++operations;
    reads += cost.reads;
    read_bytes += cost.read_bytes;
    sends += cost.sends;
    posts += cost.posts;
    completions += cost.completions;
  }
  void Print(const char* name) const {
    const double n = static_cast<double>(operations);
    std::printf(
        ", \"%s\": {\"operations\": %lu, \"ns\": %.0f, \"reads\": %.4f, "
        "\"read_bytes\": %.1f, \"sends\": %.4f, \"posts\": %.4f, \"completions\": %.4f}",
        name, operations, static_cast<double>(ns) / n, static_cast<double>(reads) / n,
        static_cast<double>(read_bytes) / n, static_cast<double>(sends) / n,
        static_cast<double>(posts) / n, static_cast<double>(completions) / n);
  }
};

class Sessions {
 public:
  Sessions(const std::string& server, uint32_t count) {
    Options options;
    options.depth = 1;
    options.location_cache_bytes = 0;
    options.connect_timeout = std::chrono::seconds(30);
    options.deadline = std::chrono::seconds(30);
    for (uint32_t i = 0; i < count; ++i) {
      auto client = AsyncClient::Connect({server}, options);
      // A server that has no room at the moment refuses the session, so this tries again.
      for (int tries = 1; absl::IsResourceExhausted(client.status()) && tries < kConnectTriesMax;
           ++tries) {
        client = AsyncClient::Connect({server}, options);
      }
      if (!client.ok()) Fail(client.status());
      clients_.push_back(*std::move(client));
      KeepAlive();
    }
  }

  // Runs `operations` operations. The clients take turns. `start(client, buffer, number)` starts an
  // operation.
  template <class Start>
  Costs Run(uint64_t operations, Start start) {
    Costs costs;
    std::vector<std::vector<std::byte>> buffers(clients_.size(), std::vector<std::byte>(64));
    const int64_t begin_ns = MonotonicNs();
    while (costs.operations < operations) {
      for (size_t i = 0; i < clients_.size(); ++i) {
        const absl::Status status = start(*clients_[i], buffers[i], next_++);
        if (!status.ok()) Fail(status);
      }
      for (const auto& client : clients_) costs.Add(Finish(*client));
    }
    costs.ns = MonotonicNs() - begin_ns;
    return costs;
  }
  ServerStats Stats() {
    ServerStats stats;
    if (absl::Status status = clients_[0]->Stats(0, &stats, 0); !status.ok()) Fail(status);
    Finish(*clients_[0]);
    return stats;
  }

 private:
  OpCost Finish(AsyncClient& client) {
    Completion done;
    while (client.Poll({&done, 1}) == 0) sched_yield();  // the server may need this core
    if (done.code != absl::StatusCode::kOk) {
      Fail(absl::Status(done.code, "an operation failed"));
    }
    return done.cost;
  }
  void KeepAlive() {
    Completion done;
    for (const auto& client : clients_) client->Poll({&done, 1});
  }

  std::vector<std::unique_ptr<AsyncClient>> clients_;
  uint64_t next_ = 0;
};

void Measure(const std::string& server, uint32_t count, uint64_t operations) {
  Sessions sessions(server, count);
  const std::string value(64, 'v');
  const auto put = [&](AsyncClient& client, std::vector<std::byte>&, uint64_t n) {
    return client.Put("key" + std::to_string(n % kKeys), value, {}, 0);
  };
  sessions.Run(kKeys, put);
  const Costs gets = sessions.Run(operations, [](AsyncClient& client, auto& buffer, uint64_t n) {
    return client.Get("key" + std::to_string(n % kKeys), buffer, 0);
  });
  const ServerStats before = sessions.Stats();
  const Costs puts = sessions.Run(operations, put);
  const ServerStats after = sessions.Stats();
  const double n = static_cast<double>(puts.operations);
  std::printf("{\"sessions\": %u, \"session_bytes\": %.0f", count,
              static_cast<double>(after.session_bytes) / count);
  gets.Print("get");
  puts.Print("put");
  std::printf(
      ", \"server\": {\"reply_posts\": %.4f, \"receive_posts\": %.4f, "
      "\"send_completions\": %.4f, \"cpu_us\": %.3f}}\n",
      static_cast<double>(after.reply_posts - before.reply_posts) / n,
      static_cast<double>(after.receive_posts - before.receive_posts) / n,
      static_cast<double>(after.send_completions - before.send_completions) / n,
      static_cast<double>(after.cpu_us - before.cpu_us) / n);
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) {
  const uint64_t sessions = argc == 4 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const uint64_t operations = argc == 4 ? std::strtoull(argv[3], nullptr, 10) : 0;
  if (sessions == 0 || sessions > 100'000 || operations == 0) {
    std::fprintf(stderr, "usage: many_sessions SERVER SESSIONS OPERATIONS\n");
    return 2;
  }
  gannet::Measure(argv[1], static_cast<uint32_t>(sessions), operations);
}
