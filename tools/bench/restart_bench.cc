// restart_bench ITEMS VALUE_BYTES MEMORY_BYTES FILE: how long a process takes to take over a memory
// file with so many items after kill -9. One process fills the file and is killed; another one
// takes it over, as kvserver does. Prints JSON: seconds, and the most memory that the second one
// took beside the region. Removes the file.

#include <glog/logging.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/server_time.h"
#include "common/rdma/memory.h"
#include "server/memory/store/store.h"
#include "server/writes/writes.h"

namespace gannet {
namespace {

struct Run {
  uint64_t items;
  uint64_t value_bytes;
  uint64_t memory_bytes;
  std::string file;
};

SharedMemory Open(const Run& run) {
  auto memory = SharedMemory::Create({.bytes = run.memory_bytes, .file = run.file});
  CHECK(memory.ok()) << memory.status();
  return *std::move(memory);
}

std::unique_ptr<Store> StoreIn(const SharedMemory& memory, uint64_t incarnation) {
  static const std::vector<uint64_t> lock_words(65536);
  auto store = Store::Create({.region = memory.bytes(),
                              .lock_words = lock_words,
                              .incarnation = incarnation,
                              .hash_seed = 42,
                              .memory_file = true});
  CHECK(store.ok()) << store.status();
  return *std::move(store);
}

// Keys have 16 bytes.
std::string KeyOf(uint64_t i) {
  char key[32];
  std::snprintf(key, sizeof(key), "key%013llu", static_cast<unsigned long long>(i));
  return key;
}

[[noreturn]] void FillAndDie(const Run& run) {
  const SharedMemory memory = Open(run);
  const std::unique_ptr<Store> store = StoreIn(memory, 1);
  Writes writes(store.get());
  const std::string value(run.value_bytes, 'v');
  for (uint64_t i = 0; i < run.items; ++i) {
    CHECK(writes.Put(KeyOf(i), value, {}, {}, ServerTime::FromMs(1)).outcome.status ==
          ReplyStatus::kOk)
        << "no room after " << i << " items";
    if (i % 1024 != 0) continue;
    store->Tidy(ServerTime::FromMs(1));
    for (int steps = 0; steps < 1000 && store->growing(); ++steps)
      store->Tidy(ServerTime::FromMs(1));
  }
  kill(getpid(), SIGKILL);
  std::abort();
}

// Returns a figure of /proc/self/status, in bytes.
uint64_t StatusBytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kib = 0;
    if (word == name && status >> kib) return kib << 10;
  }
  return 0;
}

// Returns the CPU time of this process so far. On a busy machine it says more than the time that
// passed.
double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / kNsPerSecond;
}

void Restart(const Run& run) {
  const int64_t start_ns = MonotonicNs();
  const SharedMemory memory = Open(run);
  const int64_t opened_ns = MonotonicNs();
  const double opened_cpu_s = CpuSeconds();
  const std::unique_ptr<Store> store = StoreIn(memory, 2);
  const int64_t end_ns = MonotonicNs();
  const double end_cpu_s = CpuSeconds();
  CHECK_EQ(store->taken_over()->counts.items, run.items);
  const auto seconds = [](int64_t ns) { return static_cast<double>(ns) / kNsPerSecond; };
  const uint64_t peak = StatusBytes("VmHWM:");
  std::printf(
      "{\"items\": %llu, \"value_bytes\": %llu, \"memory_bytes\": %llu, \"open_s\": %.3f, "
      "\"take_over_s\": %.3f, \"open_cpu_s\": %.3f, \"take_over_cpu_s\": %.3f, \"peak_bytes\": "
      "%llu, \"peak_by_region\": %.3f}\n",
      static_cast<unsigned long long>(run.items), static_cast<unsigned long long>(run.value_bytes),
      static_cast<unsigned long long>(run.memory_bytes), seconds(opened_ns - start_ns),
      seconds(end_ns - opened_ns), opened_cpu_s, end_cpu_s - opened_cpu_s,
      static_cast<unsigned long long>(peak),
      static_cast<double>(peak) / static_cast<double>(run.memory_bytes));
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: restart_bench ITEMS VALUE_BYTES MEMORY_BYTES FILE\n");
    return 2;
  }
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  const gannet::Run run = {std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10),
                           std::strtoull(argv[3], nullptr, 10), argv[4]};
  const pid_t filler = fork();
  if (filler == 0) gannet::FillAndDie(run);
  int status = 0;
  waitpid(filler, &status, 0);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (killed) gannet::Restart(run);
  unlink(run.file.c_str());
  return killed ? 0 : 1;
}
