#include "tests/server/memory/store/cache_policies.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <list>
#include <map>
#include <random>
#include <unordered_map>

#include "common/base/hash.h"

namespace gannet {
namespace {

// Draws items to compare, and evicts the one with the lowest worth.
class Sampling : public CachePolicy {
 public:
  Sampling(uint64_t capacity, uint32_t compared) : capacity_(capacity), compared_(compared) {}

  bool Request(const CacheRequest& request) override {
    ++now_;
    if (const auto it = places_.find(request.key); it != places_.end()) {
      Used(items_[it->second]);
      return true;
    }
    if (request.bytes > capacity_) return false;
    while (used_ + request.bytes > capacity_) EvictOne();
    Item item{.key = request.key, .bytes = request.bytes, .used = now_, .uses = 1};
    Inserted(item);
    places_[request.key] = items_.size();
    items_.push_back(item);
    used_ += request.bytes;
    return false;
  }

 protected:
  struct Item {
    uint64_t key;
    uint64_t bytes;
    uint64_t used;  // when, counted in requests
    double uses;
  };
  virtual double Worth(const Item& item) const = 0;
  virtual void Used(Item& item) = 0;
  virtual void Inserted(Item&) {}
  virtual void Evicted(const Item&) {}

  void EvictOne() {
    size_t worst = random_() % items_.size();
    for (uint32_t i = 1; i < compared_; ++i) {
      const size_t other = random_() % items_.size();
      if (Worth(items_[other]) < Worth(items_[worst])) worst = other;
    }
    Evicted(items_[worst]);
    used_ -= items_[worst].bytes;
    places_.erase(items_[worst].key);
    if (worst + 1 != items_.size()) {
      items_[worst] = items_.back();
      places_[items_[worst].key] = worst;
    }
    items_.pop_back();
  }

  const uint64_t capacity_;
  const uint32_t compared_;
  uint64_t used_ = 0;
  uint64_t now_ = 0;
  std::vector<Item> items_;
  std::unordered_map<uint64_t, size_t> places_;
  std::mt19937_64 random_{1};
};

class Counting final : public Sampling {
 public:
  Counting(uint64_t capacity, const CountingPolicy& policy)
      : Sampling(capacity, policy.compared), policy_(policy) {}

 private:
  double Now(double uses, uint64_t since) const {
    const double half = std::max(64.0, static_cast<double>(items_.size())) * policy_.halved_after;
    return uses * std::exp2(-static_cast<double>(now_ - since) / half);
  }
  double Worth(const Item& item) const override {
    return Now(item.uses, item.used) /
           std::pow(static_cast<double>(item.bytes), policy_.size_power);
  }
  void Used(Item& item) override {
    item.uses = std::min(Now(item.uses, item.used) + 1, policy_.uses_max);
    item.used = now_;
  }
  void Inserted(Item& item) override {
    const auto it = gone_.find(item.key);
    if (it == gone_.end()) return;
    item.uses = std::min(item.uses + Now(it->second.uses, it->second.used), policy_.uses_max);
    gone_.erase(it);
  }
  void Evicted(const Item& item) override {
    if (!policy_.remembers) return;
    gone_[item.key] = item;
    order_.push_back(item.key);
    for (; gone_.size() > items_.size() && !order_.empty(); order_.pop_front()) {
      gone_.erase(order_.front());
    }
  }

  const CountingPolicy policy_;
  std::unordered_map<uint64_t, Item> gone_;
  std::deque<uint64_t> order_;
};

class RedisLfu final : public Sampling {
 public:
  explicit RedisLfu(uint64_t capacity) : Sampling(capacity, 21) {}

 private:
  static constexpr double kFirst = 5;  // LFU_INIT_VAL
  static constexpr double kLogFactor = 10;
  double Worth(const Item& item) const override { return item.uses; }
  void Inserted(Item& item) override { item.uses = kFirst; }
  void Used(Item& item) override {
    const double base = std::max(0.0, item.uses - kFirst);
    std::uniform_real_distribution<> draw;
    if (item.uses < 255 && draw(random_) < 1 / (base * kLogFactor + 1)) ++item.uses;
  }
};

// Items in one or more queues, newest first.
class Queues : public CachePolicy {
 public:
  explicit Queues(uint64_t capacity) : capacity_(capacity) {}
  bool Request(const CacheRequest& request) final {
    if (const auto it = places_.find(request.key); it != places_.end()) {
      Used(it->second);
      return true;
    }
    if (request.bytes > capacity_) return false;
    while (bytes_[0] + bytes_[1] + bytes_[2] + request.bytes > capacity_) EvictOne();
    const int queue = QueueOfNew(request.key);
    queues_[queue].push_front({request, 0, queue});
    bytes_[queue] += request.bytes;
    places_[request.key] = queues_[queue].begin();
    return false;
  }

 protected:
  struct Item {
    CacheRequest request;
    uint32_t uses;
    int queue;
  };
  using Place = std::list<Item>::iterator;
  virtual void Used(Place place) = 0;
  virtual void EvictOne() = 0;
  virtual int QueueOfNew(uint64_t /*key*/) { return 0; }

  void MoveToFront(Place place, int queue) {
    bytes_[place->queue] -= place->request.bytes;
    bytes_[queue] += place->request.bytes;
    queues_[queue].splice(queues_[queue].begin(), queues_[place->queue], place);
    place->queue = queue;
  }
  void Evict(Place place) {
    bytes_[place->queue] -= place->request.bytes;
    places_.erase(place->request.key);
    queues_[place->queue].erase(place);
  }

  const uint64_t capacity_;
  std::list<Item> queues_[3];
  uint64_t bytes_[3] = {};
  std::unordered_map<uint64_t, Place> places_;
};

class Lru final : public Queues {
  using Queues::Queues;
  void Used(Place place) override { MoveToFront(place, 0); }
  void EvictOne() override { Evict(std::prev(queues_[0].end())); }
};

// Queue 0 is hot, 1 warm, 2 cold. New items enter the hot one. An item that was used at least twice
// since goes to the warm one, any other to the cold one.
class SegmentedLru final : public Queues {
  using Queues::Queues;
  void Used(Place place) override {
    ++place->uses;
    if (place->queue == 2 && place->uses >= 2) MoveToFront(place, 1);
  }
  void EvictOne() override {
    Shrink(0, capacity_ / 5);
    Shrink(1, capacity_ * 2 / 5);
    for (int queue : {2, 1, 0}) {
      if (!queues_[queue].empty()) return Evict(std::prev(queues_[queue].end()));
    }
  }
  void Shrink(int queue, uint64_t bytes) {
    while (bytes_[queue] > bytes) {
      const Place last = std::prev(queues_[queue].end());
      const bool active = last->uses >= 2;
      last->uses = 0;
      MoveToFront(last, active ? 1 : 2);
      if (queue == 1 && active && bytes_[1] > bytes) return;
    }
  }
};

class Sieve final : public Queues {
  using Queues::Queues;
  void Used(Place place) override { place->uses = 1; }
  void EvictOne() override {
    auto& queue = queues_[0];
    if (hand_ == queue.end() || !started_) hand_ = std::prev(queue.end());
    started_ = true;
    while (hand_->uses > 0) {
      hand_->uses = 0;
      hand_ = hand_ == queue.begin() ? std::prev(queue.end()) : std::prev(hand_);
    }
    const Place victim = hand_;
    hand_ = victim == queue.begin() ? queue.end() : std::prev(victim);
    Evict(victim);
  }
  Place hand_;
  bool started_ = false;
};

// Queue 0 is the small one, 1 the main one.
class S3Fifo final : public Queues {
  using Queues::Queues;
  void Used(Place place) override { place->uses = std::min(place->uses + 1, 3u); }
  int QueueOfNew(uint64_t key) override { return gone_.erase(key) > 0 ? 1 : 0; }
  void EvictOne() override {
    if (bytes_[0] > capacity_ / 10 || queues_[1].empty()) {
      if (EvictSmall()) return;
    }
    while (true) {
      const Place last = std::prev(queues_[1].end());
      if (last->uses == 0) return Evict(last);
      --last->uses;
      MoveToFront(last, 1);
    }
  }
  bool EvictSmall() {
    while (!queues_[0].empty()) {
      const Place last = std::prev(queues_[0].end());
      if (last->uses <= 1) {
        Forget(last->request.key);
        Evict(last);
        return true;
      }
      last->uses = 0;
      MoveToFront(last, 1);
    }
    return false;
  }
  void Forget(uint64_t key) {
    gone_[key] = true;
    order_.push_back(key);
    for (; gone_.size() > places_.size() && !order_.empty(); order_.pop_front()) {
      gone_.erase(order_.front());
    }
  }
  std::unordered_map<uint64_t, bool> gone_;
  std::deque<uint64_t> order_;
};

class Clock final : public CachePolicy {
 public:
  Clock(uint64_t capacity, uint32_t bits) : capacity_(capacity), uses_max_((1u << bits) - 1) {}
  bool Request(const CacheRequest& request) override {
    const uint64_t hash = Mix64(request.key);
    if (const auto it = items_.find(hash); it != items_.end()) {
      it->second.uses = std::min(it->second.uses + 1, uses_max_);
      return true;
    }
    if (request.bytes > capacity_) return false;
    while (used_ + request.bytes > capacity_) EvictOne();
    items_[hash] = {request.bytes, 0};
    used_ += request.bytes;
    return false;
  }

 private:
  struct Item {
    uint64_t bytes;
    uint32_t uses;
  };
  void EvictOne() {
    while (true) {
      auto it = items_.lower_bound(hand_);
      if (it == items_.end()) it = items_.begin();
      hand_ = it->first + 1;
      if (it->second.uses > 0) {
        --it->second.uses;
        continue;
      }
      used_ -= it->second.bytes;
      items_.erase(it);
      return;
    }
  }
  const uint64_t capacity_;
  const uint32_t uses_max_;
  std::map<uint64_t, Item> items_;
  uint64_t used_ = 0;
  uint64_t hand_ = 0;
};

}  // namespace

std::unique_ptr<CachePolicy> MakeCounting(uint64_t capacity, const CountingPolicy& policy) {
  return std::make_unique<Counting>(capacity, policy);
}
std::unique_ptr<CachePolicy> MakeLru(uint64_t capacity) { return std::make_unique<Lru>(capacity); }
std::unique_ptr<CachePolicy> MakeRedisLfu(uint64_t capacity) {
  return std::make_unique<RedisLfu>(capacity);
}
std::unique_ptr<CachePolicy> MakeSegmentedLru(uint64_t capacity) {
  return std::make_unique<SegmentedLru>(capacity);
}
std::unique_ptr<CachePolicy> MakeSieve(uint64_t capacity) {
  return std::make_unique<Sieve>(capacity);
}
std::unique_ptr<CachePolicy> MakeS3Fifo(uint64_t capacity) {
  return std::make_unique<S3Fifo>(capacity);
}
std::unique_ptr<CachePolicy> MakeClock(uint64_t capacity, uint32_t bits) {
  return std::make_unique<Clock>(capacity, bits);
}

std::vector<CacheRequest> ZipfRequests(uint64_t keys, double skew, bool scans, uint64_t requests,
                                       uint64_t seed) {
  constexpr uint64_t kScanPeriod = 20'000, kScanKeys = 5'000, kOverheadBytes = 58;
  std::vector<double> sums(keys);
  double sum = 0;
  for (uint64_t i = 0; i < keys; ++i) sums[i] = sum += std::pow(i + 1, -skew);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<> draw(0, sum);
  std::vector<CacheRequest> all(requests);
  uint64_t scan_key = kFirstScanKey, scan_left = 0;
  for (uint64_t i = 0; i < requests; ++i) {
    if (scans && i % kScanPeriod == kScanPeriod - 1) scan_left = kScanKeys;
    uint64_t key = std::lower_bound(sums.begin(), sums.end(), draw(random)) - sums.begin();
    if (scan_left > 0 && i % 2 == 1) {
      key = scan_key++;
      --scan_left;
    }
    all[i] = {key, 100 + Mix64(key + seed) % 3997 + kOverheadBytes};
  }
  return all;
}

uint64_t FootprintBytes(const std::vector<CacheRequest>& requests) {
  std::unordered_map<uint64_t, uint64_t> bytes;
  for (const CacheRequest& request : requests) {
    if (request.key < kFirstScanKey) bytes[request.key] = request.bytes;
  }
  uint64_t sum = 0;
  for (const auto& [key, n] : bytes) sum += n;
  return sum;
}

double HitRatio(CachePolicy& policy, const std::vector<CacheRequest>& requests) {
  uint64_t hits = 0;
  for (const CacheRequest& request : requests) hits += policy.Request(request);
  return static_cast<double>(hits) / static_cast<double>(requests.size());
}

}  // namespace gannet
