#ifndef GANNET_TESTS_CLIENT_API_ASYNC_RUN_H_
#define GANNET_TESTS_CLIENT_API_ASYNC_RUN_H_

#include <gannet/async_client.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gannet {

// Nothing here takes so long, however slow the machine is. Only a hang does.
inline constexpr std::chrono::seconds kHang{60};

// Polls until `count` operations are over. Returns fewer only after kHang.
inline std::vector<Completion> PollUntil(AsyncClient& client, size_t count) {
  const auto give_up = std::chrono::steady_clock::now() + kHang;
  std::vector<Completion> done;
  while (done.size() < count && std::chrono::steady_clock::now() < give_up) {
    Completion batch[16];
    const size_t n = client.Poll(batch);
    done.insert(done.end(), batch, batch + n);
  }
  EXPECT_EQ(done.size(), count) << "an operation hangs";
  return done;
}

// Runs one operation. REQUIRES: no other is in flight.
template <class F>
Completion RunOne(AsyncClient& client, F start) {
  const absl::Status status = start();
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return {};
  const std::vector<Completion> done = PollUntil(client, 1);
  return done.empty() ? Completion{} : done[0];
}

inline Completion RunGet(AsyncClient& client, std::string_view key, std::string* value = nullptr) {
  std::vector<std::byte> out(value == nullptr ? 0 : 1 << 20);
  const Completion done = RunOne(client, [&] { return client.Get(key, out, 1); });
  if (value != nullptr) {
    value->assign(reinterpret_cast<const char*>(out.data()),
                  std::min<size_t>(done.info.value_bytes, out.size()));
  }
  return done;
}

inline Completion RunPut(AsyncClient& client, std::string_view key, std::string_view value,
                         const PutOptions& options = {}) {
  return RunOne(client, [&] { return client.Put(key, value, options, 1); });
}

}  // namespace gannet

#endif  // GANNET_TESTS_CLIENT_API_ASYNC_RUN_H_
