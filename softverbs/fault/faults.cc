#include "softverbs/fault/faults.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "softverbs/base/accelerating.h"
#include "softverbs/base/mutex.h"

namespace softverbs::fault {
namespace internal {

constinit std::atomic<const Plan*> active{nullptr};

}  // namespace internal
namespace {

std::array<std::atomic<uint64_t>, kKinds> struck{};
std::array<std::atomic<uint64_t>, kKinds> calls{};
std::atomic<uint32_t> ordinals{0};

// splitmix64's finaliser.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

bool Falls(uint64_t draw, double chance) {
  return static_cast<double>(draw >> 11) * 0x1p-53 < chance;
}

// Keeps all plans for ever, because a thread may be reading any of them.
void Publish(const Plan& plan) {
  static auto* kept = new std::vector<const Plan*>;
  static auto* mutex = new Mutex;
  const auto* copy = new Plan(plan);
  const LockGuard guard(*mutex);
  kept->push_back(copy);
  internal::active.store(copy, std::memory_order_release);
}

void Announce(const std::string& text, uint64_t seed) {
  fprintf(stderr, "softverbs[%d]: faults on: %s; seed=%llu gives them again\n", getpid(),
          text.c_str(), static_cast<unsigned long long>(seed));
}

void PrintCounts() {
  std::string line = "softverbs faults: {";
  for (size_t i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    line += std::string(i == 0 ? "\"" : ",\"") + Name(kind) + "\":" + std::to_string(Count(kind));
  }
  fprintf(stderr, "%s}\n", line.c_str());
}

bool Activate(const std::string& text, std::string* error) {
  Plan plan;
  plan.seed = std::random_device()();
  if (!Parse(text, &plan, error)) return false;
  Announce(text, plan.seed);
  SetAccelerating(false);
  Publish(plan);
  return true;
}

// Fails fast on a wrong plan: silently running without faults would be worse.
const bool from_environment = [] {
  const char* text = getenv("SOFTVERBS_FAULTS");
  if (text == nullptr || *text == '\0') return false;
  std::string error;
  if (!Activate(text, &error)) {
    fprintf(stderr, "softverbs[%d]: SOFTVERBS_FAULTS: %s\n", getpid(), error.c_str());
    _exit(2);
  }
  atexit(PrintCounts);
  return true;
}();

}  // namespace

int Set(const std::string& text, std::string* error) {
  (void)from_environment;
  if (!Activate(text, error)) return EINVAL;
  ResetOrdinals();
  for (auto& count : struck) count = 0;
  for (auto& count : calls) count = 0;
  return 0;
}

void Clear() {
  internal::active.store(nullptr, std::memory_order_release);
  SetAccelerating(true);
}

// Relaxed: queue pairs that threads create at the same time need no order.
uint32_t NextOrdinal() { return ordinals.fetch_add(1, std::memory_order_relaxed) + 1; }
void ResetOrdinals() { ordinals.store(0, std::memory_order_relaxed); }

uint64_t Draw(const Plan& plan, FaultKind kind, uint32_t stream, uint64_t index) {
  const uint64_t source = uint64_t{static_cast<uint8_t>(kind)} << 32 | stream;
  return Mix(Mix(Mix(plan.seed) ^ source) ^ index);
}

// Relaxed: nothing depends on these counters.
uint64_t Count(FaultKind kind) {
  return struck[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
}
void CountOne(FaultKind kind) {
  struck[static_cast<size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
}

bool Strikes(const Plan& plan, FaultKind kind, uint32_t stream, uint64_t index) {
  return StrikesFor(plan, kind, stream, index).has_value();
}

std::optional<int64_t> StrikesFor(const Plan& plan, FaultKind kind, uint32_t stream,
                                  uint64_t index) {
  const Chance& chance = plan[kind];
  const uint64_t draw = Draw(plan, kind, stream, index);
  if (!Falls(draw, chance.chance)) return std::nullopt;
  CountOne(kind);
  const auto longest = static_cast<uint64_t>(chance.ns);
  return longest == 0 ? 0 : static_cast<int64_t>(1 + Mix(draw) % longest);
}

std::optional<int64_t> StrikesNextCall(FaultKind kind) {
  const Plan* plan = Active();
  if (plan == nullptr) return std::nullopt;
  // Relaxed: only the number matters.
  auto& count = calls[static_cast<size_t>(kind)];
  return StrikesFor(*plan, kind, 0, count.fetch_add(1, std::memory_order_relaxed));
}

RequestFaults DecideRequest(const Plan& plan, uint32_t stream, uint64_t index,
                            uint64_t of_connection, ibv_wr_opcode opcode) {
  RequestFaults faults;
  if (opcode == IBV_WR_SEND_WITH_INV) opcode = IBV_WR_SEND;
  if (plan.drop_connection_after != 0 && of_connection >= plan.drop_connection_after) {
    CountOne(FaultKind::kDropConnection);
    faults.error = IBV_WC_RETRY_EXC_ERR;
  } else if (Falls(Draw(plan, FaultKind::kError, stream, index), plan.error[opcode].chance)) {
    CountOne(FaultKind::kError);
    faults.error = plan.error_status[opcode];
  }
  if (const auto delay = StrikesFor(plan, FaultKind::kDelayPost, stream, index)) {
    faults.delay_ns = *delay;
  }
  faults.lost_ack =
      Falls(Draw(plan, FaultKind::kLostAck, stream, index), plan.lost_ack[opcode].chance);
  if (opcode == IBV_WR_RDMA_READ && plan[FaultKind::kTearRead].chance > 0) {
    faults.tear_ns = plan[FaultKind::kTearRead].ns;
    faults.tear_seed = Draw(plan, FaultKind::kTearRead, stream, index);
    faults.tear = Strikes(plan, FaultKind::kTearRead, stream, index);
  }
  return faults;
}

}  // namespace softverbs::fault
