// filled_server ITEMS MEMORY_BYTES INDEX_SLOTS: a server that already holds ITEMS items, with
// kvload's keys of 16 bytes and values of 64, put there without a network. Prints READY and its
// address; ends when its standard input does. For tools/figures/scale.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/rdma/device_choice.h"
#include "common/rdma/loopback.h"
#include "glog/logging.h"
#include "server/control/server_threads.h"
#include "tools/kvload/operation.h"

namespace gannet {
namespace {

void Fill(Store& store, uint64_t items) {
  const std::string value(64, 'v');
  std::string key;
  for (uint64_t i = 0; i < items; ++i) {
    kvload::WriteKey(i, 16, key);
    const WriteOutcome outcome = store.Put(key, value, {}, {}, /*now_ms=*/1);
    CHECK(outcome.status == ReplyStatus::kOk) << "no room after " << i << " items";
  }
}

int Run(uint64_t items, uint64_t memory_bytes, uint64_t index_slots, char** argv) {
  Server::Options options;
  const auto device = UseDevice("auto", argv);
  CHECK(device.ok()) << device.status();
  options.device = *device;
  options.listen = *OwnAddress(options.device);
  options.memory_bytes = memory_bytes;
  options.index_slots = index_slots;
  auto server = Server::Create(options);
  CHECK(server.ok()) << server.status();
  Fill((*server)->store(), items);
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
  if (argc != 4) {
    std::fprintf(stderr, "usage: filled_server ITEMS MEMORY_BYTES INDEX_SLOTS\n");
    return 2;
  }
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  return gannet::Run(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10),
                     std::strtoull(argv[3], nullptr, 10), argv);
}
