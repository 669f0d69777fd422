#include "tools/kvcli/top_change.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace gannet::kvcli {
namespace {

constexpr size_t kAwayMax = 10'000;
// Looks that are kept within the window.
constexpr int kKeptInWindow = 10;

Counts CountsOf(const ConnectedClient& client) {
  return {client.requests, client.hits, client.misses, client.reads};
}

// Returns what was counted since `before`, or all if the count began anew.
uint64_t Since(uint64_t before, uint64_t now) { return now >= before ? now - before : now; }

Counts Since(const Counts& before, const Counts& now) {
  return {Since(before.requests, now.requests), Since(before.hits, now.hits),
          Since(before.misses, now.misses), Since(before.reads, now.reads)};
}

bool IsFirst(const ConnectedClient& connection) { return connection.connection_index == 0; }

const Counts* Find(const std::map<uint32_t, Counts>& counts, uint32_t session) {
  const auto it = counts.find(session);
  return it == counts.end() ? nullptr : &it->second;
}

void SortByWork(std::vector<ClientChange>& clients) {
  std::ranges::sort(clients, [](const ClientChange& a, const ClientChange& b) {
    const uint64_t of_a = a.done.gets() + a.done.requests;
    const uint64_t of_b = b.done.gets() + b.done.requests;
    return std::tuple(of_b, a.now.session_id) < std::tuple(of_a, b.now.session_id);
  });
}

// Returns the clients of a look, with what they did since these counts.
std::vector<ClientChange> ClientsSince(const std::map<uint32_t, Counts>& before,
                                       const std::map<uint32_t, Counts>& away,
                                       const ServerLook& look) {
  std::map<uint32_t, uint32_t> connections;
  for (const ConnectedClient& it : look.connections) ++connections[it.session_id];
  std::vector<ClientChange> clients;
  for (const ConnectedClient& it : look.connections) {
    if (!IsFirst(it)) continue;
    const Counts* const there = Find(before, it.session_id);
    const Counts* const then = there != nullptr ? there : Find(away, it.session_id);
    clients.push_back({.now = it,
                       .connections = connections[it.session_id],
                       .is_new = there == nullptr,
                       .done = Since(then == nullptr ? Counts{} : *then, CountsOf(it))});
  }
  SortByWork(clients);
  return clients;
}

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  requests += other.requests;
  hits += other.hits;
  misses += other.misses;
  reads += other.reads;
  return *this;
}

TopHistory::Past TopHistory::PastOf(const ServerLook& look) const {
  Past past{.taken = look.taken, .stats = look.stats};
  for (const ConnectedClient& it : look.connections) {
    if (IsFirst(it)) past.clients.emplace(it.session_id, CountsOf(it));
  }
  for (const auto* sessions : {&last_.clients, &last_.away}) {
    for (const auto& [session, counts] : *sessions) {
      if (past.away.size() < kAwayMax && !past.clients.contains(session)) {
        past.away.emplace(session, counts);
      }
    }
  }
  return past;
}

void TopHistory::Keep(Past past) {
  last_ = past;
  if (past_.empty() || past_.back().is_birth ||
      past.taken - past_.back().taken >= window_ / kKeptInWindow) {
    past_.push_back(std::move(past));
  }
}

const TopHistory::Past& TopHistory::Before(const Past& now) {
  if (past_.empty()) return now;
  while (past_.size() > 1 && now.taken - past_[1].taken >= window_) past_.pop_front();
  return past_.front();
}

void TopHistory::BeginAnew(const ServerLook& look) {
  const bool failed_over = look.history != 0 && look.history == history_;
  const bool restarted = incarnation_ != 0 && !failed_over;
  fail_overs_ += failed_over;
  history_ = look.history;
  incarnation_ = look.incarnation;
  past_.clear();
  last_ = {};
  if (!restarted) return;
  // It had counted nothing when it began.
  Past birth{.is_birth = true};
  birth.taken = look.taken - std::chrono::milliseconds(look.stats.uptime_ms);
  past_.push_back(std::move(birth));
}

ServerChange TopHistory::Take(ServerLook look) {
  ServerChange change;
  if (look.problem.empty()) {
    if (look.incarnation != incarnation_) BeginAnew(look);
    Past now = PastOf(look);
    change = Compare(Before(now), now, look);
    Keep(std::move(now));
  }
  change.fail_overs = fail_overs_;
  change.now = std::move(look);
  change.now.connections.clear();
  return change;
}

ServerChange TopHistory::Compare(const Past& before, const Past& now, const ServerLook& look) {
  ServerChange change;
  change.restarted = before.is_birth;
  change.seconds = std::chrono::duration<double>(now.taken - before.taken).count();
  change.cores = change.PerSecond(Since(before.stats.cpu_us, now.stats.cpu_us)) / 1e6;
  change.requests = Since(before.stats.rpcs, now.stats.rpcs);
  change.evicted = Since(before.stats.items_evicted, now.stats.items_evicted);
  change.expired = Since(before.stats.items_expired, now.stats.items_expired);
  change.tier = TierCounts::Of(now.stats).Since(TierCounts::Of(before.stats));
  change.clients = ClientsSince(before.clients, before.away, look);
  for (const ClientChange& client : change.clients) {
    change.done += client.done;
    change.arrived += client.is_new;
  }
  for (const auto& [session, counts] : before.clients)
    change.went += !now.clients.contains(session);
  return change;
}

}  // namespace gannet::kvcli
