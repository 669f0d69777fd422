// Shell: how long operations take, and where the time goes.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "tools/kvcli/shell.h"

namespace gannet::kvcli {
namespace {

constexpr uint64_t kCountDefault = 1000;
constexpr size_t kValueBytes = 64;

struct Measured {
  std::string name;
  std::string what;  // where the time goes
  std::vector<int64_t> ns;

  double Us(double share) const {
    const auto at = static_cast<size_t>(share * static_cast<double>(ns.size() - 1));
    return static_cast<double>(ns[at]) / kNsPerUs;
  }
};

// Does something `count` times, as long as it succeeds.
absl::StatusOr<Measured> Measure(std::string name, std::string what, uint64_t count,
                                 const std::function<absl::Status()>& once) {
  Measured measured{std::move(name), std::move(what), {}};
  measured.ns.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const int64_t began = MonotonicNs();
    absl::Status status = once();
    measured.ns.push_back(MonotonicNs() - began);
    if (!status.ok()) return status;
  }
  std::ranges::sort(measured.ns);
  return measured;
}

Json MeasuredJson(const Measured& it) {
  return {{"operation", it.name},  {"what", it.what},         {"count", it.ns.size()},
          {"min_us", it.Us(0)},    {"p50_us", it.Us(0.5)},    {"p90_us", it.Us(0.9)},
          {"p99_us", it.Us(0.99)}, {"p999_us", it.Us(0.999)}, {"max_us", it.Us(1)}};
}

}  // namespace

int Shell::Latency(const Command& command) {
  const uint64_t count = command.count.value_or(kCountDefault);
  const std::string key = absl::StrCat("kvcli.latency.", getpid(), ".", MonotonicNs());
  const std::string value(kValueBytes, 'v');
  gannet::Options options = options_.connect;
  options.location_cache_bytes = 0;
  const auto cold = Client::Connect(options_.servers, options);
  if (!cold.ok()) return Report(cold.status());
  const auto get = [](Client& client, const std::string& of) {
    return [&client, of] { return client.Get(of).status(); };
  };
  const std::vector<ServerInfo> servers = client_.Info();
  const bool writes = std::ranges::none_of(servers, &ServerInfo::read_only);
  std::vector<absl::StatusOr<Measured>> all;
  all.push_back(Measure("miss", "window READ", count, get(**cold, key)));
  if (writes) {
    const auto put = [&] { return client_.Put(key, value).status(); };
    all.push_back(Measure("put", "request, server, store", count, put));
    all.push_back(Measure("get", "item READ", count, get(client_, key)));
    all.push_back(Measure("get, cold", "window READ, item READ", count, get(**cold, key)));
    if (const auto deleted = client_.Delete(key); !deleted.ok()) return Report(deleted.status());
  }
  all.push_back(Measure("ping", "request, server", count, [&] { return client_.Ping(); }));
  if (!options_.json) {
    std::printf("%-10s %9s %9s %9s %9s %9s %9s   %s\n", "us", "min", "p50", "p90", "p99", "p99.9",
                "max", "what it takes");
  }
  for (const absl::StatusOr<Measured>& it : all) {
    if (!it.ok()) return Report(it.status());
    if (options_.json) {
      ShowJson(MeasuredJson(*it));
    } else {
      std::printf("%s\n", absl::StrFormat("%-10s %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f   %s",
                                          it->name, it->Us(0), it->Us(0.5), it->Us(0.9),
                                          it->Us(0.99), it->Us(0.999), it->Us(1), it->what)
                              .c_str());
    }
  }
  return kExitDone;
}

}  // namespace gannet::kvcli
