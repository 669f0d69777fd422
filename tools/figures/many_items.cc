// many_items SERVER ITEMS warm|cold: runs GETs of records drawn from ITEMS, 32 in flight.
// tools/figures/instructions counts the instructions of GetAll. With `warm`, the client knows the
// records' locations. With `cold` it does not, and its location cache is full of more popular keys.

#include <gannet/async_client.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/align.h"
#include "common/base/hash.h"
#include "tools/kvload/operation.h"

namespace gannet {

constexpr uint32_t kDepth = 32;
using GetBuffers = std::array<std::array<std::byte, 64>, kDepth>;

// Runs the GETs that are counted. Each Poll but the first takes one round trip's READs. softverbs
// has executed them when the post returns, so no Poll is empty.
__attribute__((noinline)) size_t GetAll(AsyncClient& client, std::span<const std::string> keys,
                                        GetBuffers& out, std::span<Completion> done) {
  for (size_t i = 0; i < keys.size(); ++i) static_cast<void>(client.Get(keys[i], out[i], i));
  size_t n = 0;
  while (n < keys.size()) n += client.Poll(done.subspan(n));
  return n;
}

namespace {

constexpr uint32_t kGets = 2048;  // --operations of tools/figures/instructions
constexpr uint64_t kLargeCacheBytes = 4 << 20;
constexpr uint64_t kSmallCacheBytes = 16 << 10;  // 1,024 locations
constexpr int kPopularRounds = 8;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "many_items: %s\n", what);
  std::exit(1);
}

// Draws keys from all over the items, different ones for each `stream`.
std::vector<std::string> Keys(uint64_t items, uint64_t stream, uint32_t n) {
  std::vector<std::string> keys(n);
  for (uint32_t i = 0; i < n; ++i) {
    kvload::WriteKey(MapToRange(Mix64(stream << 32 | (i + 1)), items), 16, keys[i]);
  }
  return keys;
}

class Gets {
 public:
  Gets(const std::string& server, uint64_t location_cache_bytes) {
    Options options;
    options.depth = kDepth;
    options.location_cache_bytes = location_cache_bytes;
    options.connect_timeout = options.deadline = std::chrono::seconds(60);  // valgrind is slow
    auto client = AsyncClient::Connect({server}, options);
    if (!client.ok()) Fail(client.status().ToString().c_str());
    client_ = *std::move(client);
  }
  template <class Get>
  void All(const std::vector<std::string>& keys, Get get) {
    for (size_t first = 0; first < keys.size(); first += kDepth) {
      std::array<Completion, kDepth> done;
      get(*client_, std::span(keys).subspan(first, kDepth), out_, std::span(done));
      for (const Completion& each : done) {
        if (!each.found) Fail("an item is missing");
        from_cached_location_ += each.cost.from_cached_location ? 1 : 0;
      }
    }
  }
  uint64_t from_cached_location() const { return from_cached_location_; }

 private:
  std::unique_ptr<AsyncClient> client_;
  GetBuffers out_;
  uint64_t from_cached_location_ = 0;
};

// Does the same as GetAll, but is not counted.
size_t Prepare(AsyncClient& client, std::span<const std::string> keys, GetBuffers& out,
               std::span<Completion> done) {
  size_t n = 0;
  for (size_t i = 0; i < keys.size(); ++i) static_cast<void>(client.Get(keys[i], out[i], i));
  while (n < keys.size()) n += client.Poll(done.subspan(n));
  return n;
}

void Run(const std::string& server, uint64_t items, bool warm) {
  Gets gets(server, warm ? kLargeCacheBytes : kSmallCacheBytes);
  const std::vector<std::string> keys = Keys(items, 1, kGets);
  const std::vector<std::string> before = warm ? keys : Keys(items, 2, kSmallCacheBytes / 16);
  for (int round = 0; round < (warm ? 1 : kPopularRounds); ++round) gets.All(before, Prepare);
  const uint64_t known_before = gets.from_cached_location();
  gets.All(keys, GetAll);
  const uint64_t known = gets.from_cached_location() - known_before;
  if (warm ? known < kGets * 99 / 100 : known > kGets / 50)
    Fail("too few or too many locations were known");
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) {
  const uint64_t items = argc == 4 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const bool warm = argc == 4 && std::strcmp(argv[3], "warm") == 0;
  if (items == 0 || (!warm && std::strcmp(argv[3], "cold") != 0)) {
    std::fprintf(stderr, "usage: many_items SERVER ITEMS warm|cold\n");
    return 2;
  }
  gannet::Run(argv[1], items, warm);
}
