// store_bench [KEYS [VALUE_BYTES]]: measures the cost of the store's operations, without network.
// Prints JSON on stdout.
//
// Times are only trends. Instructions do not depend on the machine; count those of one operation
// with
//
//   valgrind --tool=callgrind --toggle-collect='gannet::bench::PutInPlace*' store_bench 10000
//
// and divide the result by the number of keys.

#include <glog/logging.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/server_time.h"
#include "server/memory/store/store.h"
#include "server/writes/writes.h"

namespace gannet::bench {

using Keys = std::vector<std::string>;

void PutAll(Writes& writes, const Keys& keys, const std::string& value) {
  for (const std::string& key : keys) {
    CHECK(writes.Put(key, value, {}, {}, ServerTime::FromMs(1)).outcome.status == ReplyStatus::kOk);
  }
}

// Each operation has its own function, so that a profiler can count it alone.
__attribute__((noinline)) void Insert(Writes& writes, const Keys& keys, const std::string& value) {
  PutAll(writes, keys, value);
}
__attribute__((noinline)) void PutInPlace(Writes& writes, const Keys& keys,
                                          const std::string& value) {
  PutAll(writes, keys, value);
}
__attribute__((noinline)) void PutElsewhere(Writes& writes, const Keys& keys,
                                            const std::string& value) {
  PutAll(writes, keys, value);
}
__attribute__((noinline)) void Get(Store& store, const Keys& keys, std::string* value) {
  for (const std::string& key : keys) {
    const auto read =
        store.Get(key, std::as_writable_bytes(std::span(*value)), ServerTime::FromMs(1));
    CHECK(read.status == ReplyStatus::kOk);
  }
}
__attribute__((noinline)) void Delete(Writes& writes, const Keys& keys) {
  for (const std::string& key : keys) {
    CHECK(writes.Delete(key, {}, ServerTime::FromMs(1)).outcome.status == ReplyStatus::kOk);
  }
}

template <class Work>
void Time(const char* name, const Keys& keys, Work work) {
  const int64_t start_ns = MonotonicNs();
  work();
  const int64_t ns = MonotonicNs() - start_ns;
  std::printf(", \"%s_ns\": %.1f", name, static_cast<double>(ns) / keys.size());
}

void Run(size_t n, size_t value_bytes) {
  // Room for every key twice, and an index three quarters full.
  const size_t block = SizeClassBytes(SizeClassFor(ItemBytes(16, 2 * value_bytes)));
  const size_t bytes = (64 << 20) + n * (2 * block + 16);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  PCHECK(memory != MAP_FAILED);
  const std::vector<uint64_t> lock_words(1);
  auto created = Store::Create({.region = {static_cast<std::byte*>(memory), bytes},
                                .lock_words = lock_words,
                                .index_slots = n * 4 / 3 + 100,
                                .index_grows = false,
                                .incarnation = 1,
                                .hash_seed = 1});
  CHECK(created.ok()) << created.status();
  Store& store = **created;
  Writes writes(&store);
  Keys keys;
  for (size_t i = 0; i < n; ++i) {
    const std::string number = std::to_string(i);
    keys.push_back(std::string(16 - number.size(), 'k') + number);
  }
  const std::string value(value_bytes, 'a'), other(value_bytes, 'b'), longer(2 * value_bytes, 'c');
  std::string out(2 * value_bytes, '\0');
  std::printf("{\"keys\": %zu, \"key_bytes\": 16, \"value_bytes\": %zu", n, value_bytes);
  Time("insert", keys, [&] { Insert(writes, keys, value); });
  Time("put_in_place", keys, [&] { PutInPlace(writes, keys, other); });
  Time("get", keys, [&] { Get(store, keys, &out); });
  Time("put_elsewhere", keys, [&] { PutElsewhere(writes, keys, longer); });
  Time("delete", keys, [&] { Delete(writes, keys); });
  std::printf("}\n");
  StatsReply stats{};
  store.FillStats(&stats);
  CHECK_EQ(stats.items, 0u);
  CHECK_EQ(stats.heap_bytes, 0u);
}

}  // namespace gannet::bench

int main(int argc, char** argv) {
  const size_t keys = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const size_t value_bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 64;
  if (keys == 0 || value_bytes == 0 || 2 * value_bytes > gannet::kValueBytesMax) {
    std::fprintf(stderr, "usage: store_bench [KEYS [VALUE_BYTES]]\n");
    return 2;
  }
  gannet::bench::Run(keys, value_bytes);
}
