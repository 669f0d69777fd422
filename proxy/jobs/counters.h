#ifndef GANNET_PROXY_JOBS_COUNTERS_H_
#define GANNET_PROXY_JOBS_COUNTERS_H_

#include <atomic>
#include <cstdint>
#include <ctime>
#include <deque>
#include <string>
#include <vector>

namespace gannet::proxy {

class ClientList;
class LoadedScripts;
class MemoryLimit;
class Passwords;

// A number that one thread counts and others read. Relaxed: readers want a recent value, and
// nothing else depends on it.
class Count {
 public:
  void Add(uint64_t n = 1) {
    number_.store(number_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void Subtract() {
    number_.store(number_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  void Set(uint64_t n) { number_.store(n, std::memory_order_relaxed); }
  uint64_t Get() const { return number_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> number_{0};
};

// What one thread of the proxy counts.
struct Counters {
  Count connections;
  Count connections_made;
  Count redis_commands;
  Count memcached_commands;  // of the text protocol
  Count binary_commands;     // of memcached's binary protocol
  Count error_replies;
  Count gets;  // keys that were asked for
  Count hits;
  Count sets;
  // Of memcached's writes with a cas unique.
  Count cas_hits;
  Count cas_misses;
  Count cas_badval;
  // Operations at the store that failed.
  Count store_unreachable;
  Count store_late;    // no answer in time
  Count store_lost;    // the server was lost meanwhile
  Count store_full;    // no room for a write
  Count store_denied;  // the proxy's key does not allow it
};

// What all threads share, and what commands report.
struct Service {
  std::deque<Counters> threads;  // one for each thread; made before the threads start
  std::string version;
  std::vector<std::string> servers;
  uint64_t connections_max = 0;
  uint32_t databases = 1;
  int64_t script_cpu_ms = 100;  // of one run, which the other connections of its thread wait for
  std::time_t started = 0;
  ClientList* clients = nullptr;
  LoadedScripts* scripts = nullptr;
  const MemoryLimit* memory = nullptr;
  const Passwords* passwords = nullptr;  // nullptr: none is wanted

  uint64_t Commands() const {
    return Sum(&Counters::redis_commands) + Sum(&Counters::memcached_commands) +
           Sum(&Counters::binary_commands);
  }
  uint64_t Sum(Count Counters::*count) const {
    uint64_t sum = 0;
    for (const Counters& thread : threads) sum += (thread.*count).Get();
    return sum;
  }
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_COUNTERS_H_
