#ifndef GANNET_TOOLS_KVCLI_TOP_CHANGE_H_
#define GANNET_TOOLS_KVCLI_TOP_CHANGE_H_

#include <gannet/observed.h>
#include <gannet/types.h>
#include <gannet/walker.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/kvcli/tier_figures.h"

namespace gannet::kvcli {

// What `kvcli top` shows: what a server's clients did between two looks at the server.

// What clients counted.
struct Counts {
  uint64_t requests = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t reads = 0;

  uint64_t gets() const { return hits + misses; }
  Counts& operator+=(const Counts& other);
  bool operator==(const Counts&) const = default;
};

// The keys of a server that are used most, as the last look at them found, or why there are none.
struct HotKeysLook {
  std::vector<HotKey> keys;
  std::string problem;
};

// What one server told at one moment. If `problem` is not empty, it told nothing, and only the
// server's names are set.
struct ServerLook {
  std::string endpoint;
  std::string name;
  std::string problem;
  std::chrono::nanoseconds taken{0};  // when, by a clock that does not go back
  uint64_t incarnation = 0;
  uint64_t history = 0;  // of its group, whose primary it is; 0: it is in none
  uint32_t epoch = 0;    // of that group, modulo 4,096
  ServerStats stats;
  std::vector<RailInfo> rails;  // none if there is one
  std::vector<ConnectedClient> connections;
  std::optional<HotKeysLook> hot_keys;  // if they are wanted
};

// What a client did. Rates are `done` by ServerChange::seconds.
struct ClientChange {
  ConnectedClient now;       // the first connection of its session
  uint32_t connections = 1;  // of its session
  bool is_new = false;       // its session was not there at the earlier look
  Counts done;
};

struct ServerChange {
  ServerLook now;  // without its connections
  // The server that the rates are of began after the earlier look. They are of its whole life.
  bool restarted = false;
  // How often another member of its group became primary since the first look. Rates begin anew
  // then, because the new primary's counters are of its own life, and it served nobody until now.
  uint64_t fail_overs = 0;
  double seconds = 0;  // that the rates are of; 0: there was no earlier look, so there are none
  double cores = 0;    // that the server kept busy
  uint64_t requests = 0;
  uint64_t evicted = 0;
  uint64_t expired = 0;
  TierCounts tier;
  Counts done;  // by the clients
  uint32_t arrived = 0;
  uint32_t went = 0;
  std::vector<ClientChange> clients;  // the busiest first

  double PerSecond(uint64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

// Takes looks at one server, and says what changed.
//
// Clients tell of their GETs a few times a second at most, so that counts grow in steps. Therefore
// a look is not compared with the one before, but with one that is `window` older if there is one.
//
// Counts belong to a session. A session whose connection broke keeps its counts and may come back,
// so the last counts of those that went are kept too.
//
// One thread.
class TopHistory {
 public:
  explicit TopHistory(std::chrono::nanoseconds window) : window_(window) {}

  ServerChange Take(ServerLook look);

 private:
  // What is kept of a look.
  struct Past {
    bool is_birth = false;  // no look, but the moment when the server began
    std::chrono::nanoseconds taken{0};
    ServerStats stats = {};
    std::map<uint32_t, Counts> clients = {};  // by session
    std::map<uint32_t, Counts> away = {};     // sessions that were there at an earlier look
  };

  // Forgets what another run of the server told.
  void BeginAnew(const ServerLook& look);
  Past PastOf(const ServerLook& look) const;
  // Returns what to compare `now` with: `now` itself if there is nothing earlier.
  const Past& Before(const Past& now);
  static ServerChange Compare(const Past& before, const Past& now, const ServerLook& look);
  // Keeps a look for later ones to be compared with.
  void Keep(Past past);

  std::chrono::nanoseconds window_;
  uint64_t history_ = 0;  // of the group of the last look
  uint64_t fail_overs_ = 0;
  uint64_t incarnation_ = 0;  // of `last_` and all in `past_`; 0: there was no look yet
  Past last_;
  std::deque<Past> past_;  // the oldest first
};

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_TOP_CHANGE_H_
