// Measures what the machine's memory can do without a device, and prints JSON. Softverbs' figures
// are compared with this floor.
//
//   memcpy   copies 64 bytes from a buffer of --footprint bytes: always the same, or random ones
//   ring     sends a message of 64 bytes to another process and back, through shared memory, while
//            both poll
//
// Times are nanoseconds. --batch copies are timed together, because reading the clock takes longer
// than a copy.

#include <gflags/gflags.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

DEFINE_uint64(footprint, uint64_t{4} << 30, "bytes of memory that random copies are spread over");
DEFINE_uint32(batches, 20'000, "number of batches of copies, which are timed one by one");
DEFINE_uint32(batch, 64, "number of copies in a batch");
DEFINE_uint32(round_trips, 200'000, "number of messages that are sent and answered");

namespace gannet {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMessage = 64;
constexpr int kFailed = 1;

int64_t NowNs() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

Json Percentiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return samples[static_cast<size_t>(share * static_cast<double>(samples.size() - 1))];
  };
  return {{"p50_ns", at(0.5)}, {"p99_ns", at(0.99)}};
}

void* Map(size_t bytes, int flags) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// --- memcpy
// ---------------------------------------------------------------------------------------

// Returns the next of a sequence of numbers that the processor cannot predict (splitmix64).
uint64_t NextRandom(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Each copy waits for the one before, as GETs that run one at a time do. The address of a copy
// depends on the bytes of the one before, which are zero.
Json TimeCopies(const uint8_t* from, uint64_t lines) {
  std::vector<double> samples;
  uint64_t state = 1, copied[kMessage / 8] = {};
  for (uint32_t batch = 0; batch < FLAGS_batches; ++batch) {
    const int64_t began = NowNs();
    for (uint32_t i = 0; i < FLAGS_batch; ++i) {
      const uint64_t line = (NextRandom(&state) + copied[7]) % lines;
      memcpy(copied, from + line * kMessage, kMessage);
      asm volatile("" : : "r"(copied) : "memory");
    }
    samples.push_back(static_cast<double>(NowNs() - began) / FLAGS_batch);
  }
  return Percentiles(std::move(samples));
}

// --- the ring
// -------------------------------------------------------------------------------------

// A ring with one producer and one consumer. The counters count messages. Each has its own cache
// line.
struct Ring {
  static constexpr uint64_t kPlaces = 256;
  alignas(64) std::atomic<uint64_t> tail;  // the producer's
  alignas(64) std::atomic<uint64_t> head;  // the consumer's
  alignas(64) uint64_t places[kPlaces][kMessage / 8];
};
struct RingPair {
  Ring there, back;
};

// Spins until done() holds. Both processes may share a core, so this yields it after a while.
template <class Done>
void SpinUntil(Done&& done) {
  for (int spins = 0; !done(); ++spins) {
    if (spins < 100'000) {
      __builtin_ia32_pause();
    } else {
      sched_yield();
    }
  }
}

void Send(Ring* ring, const uint64_t* message) {
  const uint64_t tail = ring->tail.load(std::memory_order_relaxed);
  // Acquire pairs with the release in Receive: the place was read.
  SpinUntil([&] { return tail - ring->head.load(std::memory_order_acquire) < Ring::kPlaces; });
  memcpy(ring->places[tail % Ring::kPlaces], message, kMessage);
  // Release: the message is complete when it is counted.
  ring->tail.store(tail + 1, std::memory_order_release);
}

void Receive(Ring* ring, uint64_t* message) {
  const uint64_t head = ring->head.load(std::memory_order_relaxed);
  // Acquire pairs with the release in Send.
  SpinUntil([&] { return ring->tail.load(std::memory_order_acquire) != head; });
  memcpy(message, ring->places[head % Ring::kPlaces], kMessage);
  ring->head.store(head + 1, std::memory_order_release);
}

void Answer(RingPair* rings) {
  uint64_t message[kMessage / 8];
  for (uint32_t i = 0; i < FLAGS_round_trips; ++i) {
    Receive(&rings->there, message);
    Send(&rings->back, message);
  }
}

Json TimeRoundTrips(RingPair* rings) {
  std::vector<double> samples;
  uint64_t message[kMessage / 8] = {};
  for (uint32_t i = 0; i < FLAGS_round_trips; ++i) {
    const int64_t began = NowNs();
    Send(&rings->there, message);
    Receive(&rings->back, message);
    samples.push_back(static_cast<double>(NowNs() - began));
  }
  return Percentiles(std::move(samples));
}

int Fail(const char* what) {
  perror(what);
  return kFailed;
}

int Run() {
  auto* rings = static_cast<RingPair*>(Map(sizeof(RingPair), MAP_SHARED));
  if (rings == nullptr) return Fail("floor: mapping the rings");
  const pid_t peer = fork();
  if (peer < 0) return Fail("floor: fork");
  if (peer == 0) {
    Answer(rings);
    _exit(0);
  }
  Json report;
  report["ring_64_round_trip"] = TimeRoundTrips(rings);
  waitpid(peer, nullptr, 0);

  const uint64_t lines = std::max<uint64_t>(FLAGS_footprint / kMessage, 1);
  auto* memory = static_cast<uint8_t*>(Map(lines * kMessage, MAP_SHARED));
  if (memory == nullptr) return Fail("floor: mapping --footprint bytes");
  memset(memory, 0, lines * kMessage);
  report["footprint"] = lines * kMessage;
  report["memcpy_64_hot"] = TimeCopies(memory, 1);
  report["memcpy_64_random"] = TimeCopies(memory, lines);
  printf("%s\n", report.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) {
  gflags::SetUsageMessage("floor [--footprint=BYTES]: prints the times of bare memory as JSON");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return gannet::Run();
}
