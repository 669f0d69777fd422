#ifndef GANNET_TESTS_SERVER_MEMORY_STORE_CACHE_POLICIES_H_
#define GANNET_TESTS_SERVER_MEMORY_STORE_CACHE_POLICIES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gannet {

// Exact simulations of caches: the oracle for what the store's eviction should achieve, and the
// policies that it was chosen from (docs/memory.md).

struct CacheRequest {
  uint64_t key;
  uint64_t bytes;  // what the item takes, overhead included
};

class CachePolicy {
 public:
  virtual ~CachePolicy() = default;
  // One request of a cache-aside client: a hit counts as a use, and a miss inserts. Returns whether
  // it was a hit.
  virtual bool Request(const CacheRequest& request) = 0;
};

struct NamedPolicy {
  std::string name;
  std::function<std::unique_ptr<CachePolicy>(uint64_t capacity)> make;
};

// What the store does, with exact counts: an item's uses, at most `uses_max`, count half after
// `halved_after` uses for each item in the cache. Among `compared` items drawn at random, the one
// with the fewest uses per bytes^size_power goes. With `remembers`, a key that comes back has the
// uses that it had, while there are not more such keys than items.
struct CountingPolicy {
  double halved_after = 16;
  double size_power = 0.75;
  bool remembers = true;
  uint32_t compared = 32;
  double uses_max = 32;
};
std::unique_ptr<CachePolicy> MakeCounting(uint64_t capacity, const CountingPolicy& policy);

std::unique_ptr<CachePolicy> MakeLru(uint64_t capacity);
// Redis: LRU or LFU among 5 samples and the 16 best of earlier ones (here: among 21), with 8-bit
// counters of probability (lfu-log-factor 10).
std::unique_ptr<CachePolicy> MakeRedisLfu(uint64_t capacity);
// memcached: segmented LRU (hot 20 %, warm 40 %, cold).
std::unique_ptr<CachePolicy> MakeSegmentedLru(uint64_t capacity);
std::unique_ptr<CachePolicy> MakeSieve(uint64_t capacity);
std::unique_ptr<CachePolicy> MakeS3Fifo(uint64_t capacity);
// CLOCK in the order of the keys' hashes, with a counter of so many bits.
std::unique_ptr<CachePolicy> MakeClock(uint64_t capacity, uint32_t bits);

// A workload: zipf over `keys` keys whose values have 100 to 4,096 bytes. With scans, every 20,000
// requests 5,000 keys are each asked for once, between the others.
std::vector<CacheRequest> ZipfRequests(uint64_t keys, double skew, bool scans, uint64_t requests,
                                       uint64_t seed);
// The sum of the bytes of all keys that are not part of a scan.
uint64_t FootprintBytes(const std::vector<CacheRequest>& requests);
double HitRatio(CachePolicy& policy, const std::vector<CacheRequest>& requests);

// Keys of scans begin here.
inline constexpr uint64_t kFirstScanKey = uint64_t{1} << 40;

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_MEMORY_STORE_CACHE_POLICIES_H_
