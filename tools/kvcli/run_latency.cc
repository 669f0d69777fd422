// latency: how long operations take, and where the time goes.

#include <gannet/walker.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "tools/kvcli/run_verbs.h"

namespace gannet::kvcli {
namespace {

constexpr uint64_t kCountDefault = 1000;
constexpr size_t kValueBytes = 64;
constexpr uint32_t kReadBytes = 64;
constexpr uint64_t kCountMax = 1'000'000;  // all are kept, and sorted

using Once = std::function<absl::Status()>;

struct Measured {
  std::string name;
  std::string what;  // where the time goes
  std::vector<int64_t> ns;

  double Us(double share) const {
    const auto at = static_cast<size_t>(share * static_cast<double>(ns.size() - 1));
    return static_cast<double>(ns[at]) / kNsPerUs;
  }
};

// Does something `count` times, as long as it succeeds. An interrupt ends it early, with what was
// measured until then.
absl::StatusOr<Measured> Measure(std::string name, std::string what, uint64_t count,
                                 const Shell& shell, const Once& once) {
  Measured measured{std::move(name), std::move(what), {}};
  measured.ns.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    if (i > 0 && shell.interrupted()) break;
    const int64_t began = MonotonicNs();
    absl::Status status = once();
    measured.ns.push_back(MonotonicNs() - began);
    if (!status.ok()) return status;
  }
  std::ranges::sort(measured.ns);
  return measured;
}

// What a part of the way takes: the median of one operation, less that of another which lacks it.
struct Part {
  const char* name;
  const char* of;
  const char* without;  // empty: nothing
  const char* what;
};
constexpr Part kParts[] = {
    {"device", "read", "", "one bare READ, whatever it is for"},
    {"window", "miss", "read", "looking up a key: a longer READ, and what the client does"},
    {"item", "get", "read", "a GET whose place is known: the item, its checks and its copy"},
    {"server", "ping", "read", "the server's CPU wakes, answers, and the client takes the answer"},
    {"store", "put", "ping", "writing the item"},
};

std::optional<double> MedianUs(const std::vector<Measured>& all, std::string_view name) {
  const auto it = std::ranges::find(all, name, &Measured::name);
  return it == all.end() ? std::nullopt : std::optional<double>(it->Us(0.5));
}

std::optional<double> PartUs(const std::vector<Measured>& all, const Part& part) {
  const auto whole = MedianUs(all, part.of);
  const auto rest = *part.without == '\0' ? 0 : MedianUs(all, part.without);
  if (!whole || !rest) return std::nullopt;
  return *whole - *rest;
}

Json PartsJson(const std::vector<Measured>& all) {
  Json parts = Json::object();
  for (const Part& part : kParts) {
    if (const auto us = PartUs(all, part)) parts[absl::StrCat(part.name, "_us")] = *us;
  }
  return {{"parts", parts}};
}

std::string PartsText(const std::vector<Measured>& all) {
  std::string text = "\nwhere the time goes, by the medians:\n";
  for (const Part& part : kParts) {
    const auto us = PartUs(all, part);
    if (!us) continue;
    const std::string sum = absl::StrCat(part.of, *part.without ? " - " : "", part.without);
    absl::StrAppendFormat(&text, "%-10s %9.1f   %-11s   %s\n", part.name, *us, sum, part.what);
  }
  return text;
}

std::string MeasuredText(const Measured& it) {
  return absl::StrFormat("%-10s %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f   %s\n", it.name, it.Us(0),
                         it.Us(0.5), it.Us(0.9), it.Us(0.99), it.Us(0.999), it.Us(1), it.what);
}

Json MeasuredJson(const Measured& it) {
  return {{"operation", it.name},  {"what", it.what},         {"count", it.ns.size()},
          {"min_us", it.Us(0)},    {"p50_us", it.Us(0.5)},    {"p90_us", it.Us(0.9)},
          {"p99_us", it.Us(0.99)}, {"p999_us", it.Us(0.999)}, {"max_us", it.Us(1)}};
}

// What an operation of each kind takes, on `key`, which is gone in the end.
absl::StatusOr<std::vector<Measured>> MeasureKinds(Client& client, Client& cold, Walker& walker,
                                                   uint64_t count, const std::string& key,
                                                   const Shell& shell) {
  const auto get = [&key](Client& its) { return [&] { return its.Get(key).status(); }; };
  const std::vector<ServerInfo> servers = client.Info();
  const bool writes = std::ranges::none_of(servers, &ServerInfo::read_only);
  std::vector<Measured> all;
  const auto add = [&](std::string name, std::string what, const Once& once) {
    auto measured = Measure(std::move(name), std::move(what), count, shell, once);
    if (measured.ok()) all.push_back(*std::move(measured));
    return measured.status();
  };
  GANNET_RETURN_IF_ERROR(
      add("read", "bare READ of 64 bytes", [&] { return walker.ReadOnce(kReadBytes); }));
  GANNET_RETURN_IF_ERROR(add("miss", "window READ", get(cold)));
  if (writes) {
    const std::string value(kValueBytes, 'v');
    const PutOptions kept{.ttl = std::chrono::hours(1)};  // in case that this is killed
    GANNET_RETURN_IF_ERROR(add("put", "request, server, store",
                               [&] { return client.Put(key, value, kept).status(); }));
    GANNET_RETURN_IF_ERROR(add("get", "item READ", get(client)));
    GANNET_RETURN_IF_ERROR(add("get, cold", "window READ, item READ", get(cold)));
    GANNET_RETURN_IF_ERROR(client.Delete(key).status());
  }
  GANNET_RETURN_IF_ERROR(add("ping", "request, server", [&] { return client.Ping(); }));
  return all;
}

}  // namespace

int RunLatency(Shell& shell, const Command& command) {
  shell.BeginWait();
  const uint64_t count = command.count.value_or(kCountDefault);
  if (count > kCountMax) {
    return shell.Report(
        absl::InvalidArgumentError(absl::StrCat("latency: --count is at most ", kCountMax)));
  }
  const std::string key = absl::StrCat("kvcli.latency.", getpid(), ".", MonotonicNs());
  gannet::Options options = shell.options().connect;
  options.location_cache_bytes = 0;
  const auto cold = Client::Connect(shell.options().servers, options);
  if (!cold.ok()) return shell.Report(cold.status());
  const auto walker =
      Walker::Connect(shell.options().servers.front(), shell.options().connect, {0});
  if (!walker.ok()) return shell.Report(walker.status());
  const auto all = MeasureKinds(shell.client(), **cold, **walker, count, key, shell);
  if (!all.ok()) return shell.Report(all.status());
  if (shell.options().json) {
    for (const Measured& it : *all) shell.ShowJson(MeasuredJson(it));
    shell.ShowJson(PartsJson(*all));
    return kExitDone;
  }
  std::printf("%-10s %9s %9s %9s %9s %9s %9s   %s\n", "us", "min", "p50", "p90", "p99", "p99.9",
              "max", "what it takes");
  for (const Measured& it : *all) std::fputs(MeasuredText(it).c_str(), stdout);
  std::fputs(PartsText(*all).c_str(), stdout);
  return kExitDone;
}

}  // namespace gannet::kvcli
