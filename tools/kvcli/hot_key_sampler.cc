#include "tools/kvcli/hot_key_sampler.h"

#include <chrono>
#include <utility>

namespace gannet::kvcli {
namespace {

constexpr std::chrono::seconds kPause{1};

}  // namespace

HotKeySampler::HotKeySampler(std::string server, Options options, size_t count)
    : server_(std::move(server)), options_(std::move(options)), count_(count) {
  thread_ = std::thread([this] { Run(); });
}

HotKeySampler::~HotKeySampler() {
  {
    const std::lock_guard lock(mutex_);
    stops_.store(true, std::memory_order_relaxed);
  }
  stopping_.notify_one();
  thread_.join();
}

HotKeysLook HotKeySampler::Latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void HotKeySampler::Run() {
  const auto stops = [this] { return stops_.load(std::memory_order_relaxed); };
  while (!stops()) {
    HotKeysLook look = LookOnce();
    std::unique_lock lock(mutex_);
    latest_ = std::move(look);
    stopping_.wait_for(lock, kPause, stops);
  }
}

// Begins with another connection after an error, for the server may be another one by then.
HotKeysLook HotKeySampler::LookOnce() {
  HotKeysLook look;
  if (walker_ == nullptr) {
    auto walker = Walker::Connect(server_, options_);
    if (!walker.ok()) {
      look.problem = std::string(walker.status().message());
      return look;
    }
    walker_ = *std::move(walker);
  }
  auto keys = walker_->HotKeys(count_, [this] { return !stops_.load(std::memory_order_relaxed); });
  if (keys.ok()) {
    look.keys = *std::move(keys);
    return look;
  }
  walker_.reset();
  look.problem = absl::IsFailedPrecondition(keys.status())
                     ? "the server keeps none without --on_full=evict"
                     : std::string(keys.status().message());
  return look;
}

}  // namespace gannet::kvcli
