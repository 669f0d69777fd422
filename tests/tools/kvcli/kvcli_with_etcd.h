#ifndef GANNET_TESTS_TOOLS_KVCLI_KVCLI_WITH_ETCD_H_
#define GANNET_TESTS_TOOLS_KVCLI_KVCLI_WITH_ETCD_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/common/etcd/etcd_caller.h"
#include "tests/common/etcd/etcd_processes.h"
#include "tests/support/run_program.h"
#include "tests/support/server_process.h"

namespace gannet {

// kvcli cluster with a real etcd, and no servers: the test plays their part.
class KvcliWithEtcd : public testing::Test {
 protected:
  using Words = std::vector<std::string>;

  Words Command(const Words& words) const {
    Words all = {test_support::ProgramPath("kvcli"), "cluster"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--etcd=" + etcd_.Url(0), "--cluster=c", "--device=soft"});
    return all;
  }
  test_support::Finished Kvcli(const Words& words) const {
    return test_support::RunProgram(Command(words));
  }

  EtcdProcesses etcd_{1};
  EtcdCaller caller_{etcd_.Urls()};
};

}  // namespace gannet

#endif  // GANNET_TESTS_TOOLS_KVCLI_KVCLI_WITH_ETCD_H_
