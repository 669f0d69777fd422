// verbs_contract_test [--device=NAME] [--over-tcp] [GoogleTest's flags]: the suite, on softverbs0,
// rxe0, siw0, mlx5_0... With --over-tcp softverbs connects the two ends as if they were on two
// hosts. verbs_contract_two_hosts_test is the same with two instances of softverbs in two
// namespaces.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "softverbs/tests/support/free_port.h"
#include "softverbs/tests/support/role_process.h"
#include "softverbs/tests/verbs_contract/device.h"
#include "softverbs/tests/verbs_contract/host.h"

namespace {

// A thousand connections need more descriptors than a process is given at first.
void TakeAllDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Makes softverbs reach this host by TCP, in this process and in those that tests start. Returns
// the address for it. REQUIRES: the device was not used yet.
std::string PutOnTcp() {
  const std::string address = "127.0.0.2";
  setenv("SOFTVERBS_NET", (address + ":" + std::to_string(test_support::FreePort())).c_str(), 1);
  setenv("SOFTVERBS_NET_SELF", "1", 1);
  return address;
}

void PrintDevice() {
  const verbs_contract::Device& device = verbs_contract::TheDevice();
  char address[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(device.address).sin_addr, address,
            sizeof(address));
  std::printf("verbs_contract: on %s (%s) at %s\n", device.name,
              device.is_iwarp() ? "iWARP" : "InfiniBand or RoCE", address);
}

}  // namespace

int main(int argc, char** argv) {
  TakeAllDescriptors();
  std::string address = verbs_contract::MakeHosts();
  if (const auto exit_code = test_support::RunRole(argc, argv)) return *exit_code;
  testing::InitGoogleTest(&argc, argv);
  const std::string flag = "--device=";
  std::string name;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--over-tcp") {
      address = PutOnTcp();
    } else if (argument.starts_with(flag)) {
      name = argument.substr(flag.size());
    } else {
      std::fprintf(stderr,
                   "usage: verbs_contract_test [--device=NAME] [--over-tcp] [--gtest_...]\n");
      return 2;
    }
  }
  if (!verbs_contract::ChooseDevice(name, address)) return 1;
  PrintDevice();
  return RUN_ALL_TESTS();
}
