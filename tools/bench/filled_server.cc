// filled_server ITEMS MEMORY_BYTES INDEX_SLOTS [CHURN]: runs a server that already holds ITEMS
// items, with kvload's keys of 16 bytes and values of 64. It stores them without a network. With
// CHURN, it deletes and inserts all items again CHURN times. Prints READY and its address. Exits at
// the end of its standard input. For tools/figures/scale and tools/bench.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/clocks.h"
#include "common/base/server_time.h"
#include "common/rdma/device_choice.h"
#include "common/rdma/loopback.h"
#include "glog/logging.h"
#include "server/main/control/server_threads.h"
#include "tools/kvload/operation.h"

namespace gannet {
namespace {

void Put(Writes& writes, uint64_t begin, uint64_t end) {
  const std::string value(64, 'v');
  std::string key;
  for (uint64_t i = begin; i < end; ++i) {
    kvload::WriteKey(i, 16, key);
    const WriteOutcome outcome = writes.Put(key, value, {}, {}, ServerTime::FromMs(1)).outcome;
    CHECK(outcome.status == ReplyStatus::kOk) << "no room after " << i << " items";
  }
}

void Delete(Writes& writes, uint64_t begin, uint64_t end) {
  std::string key;
  for (uint64_t i = begin; i < end; ++i) {
    kvload::WriteKey(i, 16, key);
    CHECK(writes.Delete(key, {}, ServerTime::FromMs(1)).outcome.status == ReplyStatus::kOk);
  }
}

// Deletes a part of the keys, and then inserts them again. With only one key at a time, a key would
// find its old slot again, so nothing would change.
void Churn(Writes& writes, uint64_t items) {
  constexpr uint64_t kParts = 16;
  for (uint64_t i = 0; i < kParts; ++i) {
    Delete(writes, items * i / kParts, items * (i + 1) / kParts);
    Put(writes, items * i / kParts, items * (i + 1) / kParts);
  }
}

int Run(uint64_t items, uint64_t memory_bytes, uint64_t index_slots, uint64_t churn, char** argv) {
  Server::Options options{.clocks = MachineClocks()};
  const auto device = UseDevice("auto", argv);
  CHECK(device.ok()) << device.status();
  options.device = *device;
  options.listen = *OwnAddress(options.device);
  options.memory_bytes = memory_bytes;
  options.index_slots = index_slots;
  options.index_grows = false;
  auto server = Server::Create(options);
  CHECK(server.ok()) << server.status();
  Put((*server)->writes(), 0, items);
  for (uint64_t i = 0; i < churn; ++i) Churn((*server)->writes(), items);
  const std::string address = (*server)->address().ToString();
  auto threads = ServerThreads::Start(*std::move(server), {});
  CHECK(threads.ok()) << threads.status();
  std::printf("READY %s\n", address.c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  (*threads)->RequestStop();
  return (*threads)->Wait().ok() ? 0 : 1;
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: filled_server ITEMS MEMORY_BYTES INDEX_SLOTS [CHURN]\n");
    return 2;
  }
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  return gannet::Run(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10),
                     std::strtoull(argv[3], nullptr, 10),
                     argc == 5 ? std::strtoull(argv[4], nullptr, 10) : 0, argv);
}
