// openmpi-bin: two ranks of a small program, over UCX and over libfabric. Without the shared memory
// and the TCP that Open MPI would prefer on one host.

#include <cstdlib>
#include <string>

#include "softverbs/tests/conformance/row.h"
#include "softverbs/tests/support/child_process.h"

namespace conformance {
namespace {

using test_support::ChildProcess;

std::string Program() { return test_support::TestProgramPath("conformance_mpi_exchange"); }

// Open MPI's own compiler builds the program.
class Compiled : public ::testing::Environment {
 public:
  void SetUp() override {
    constexpr std::chrono::seconds kLimit(60);
    const std::string source = CONFORMANCE_FOLDER "/mpi_exchange.c";
    ChildProcess mpicc({.argv = {"mpicc", "-O1", "-o", Program(), source},
                        .streams = ChildProcess::Streams::kCaptured});
    ASSERT_EQ(mpicc.Wait(kLimit), 0) << "mpicc: `./dev deps` installs it\n" << mpicc.Stderr();
  }
};
const ::testing::Environment* const kCompiled =
    ::testing::AddGlobalTestEnvironment(new Compiled);  // GoogleTest deletes it

// Where the ranks run. Under two_hosts.py each has a host of its own, and a script takes the place
// of ssh.
std::string Placement() {
  if (getenv("TWO_HOSTS_B_NET") == nullptr) return "--oversubscribe";
  return std::string("--host 127.0.0.1:1,") + getenv("TWO_HOSTS_B") +
         ":1 --mca plm_rsh_agent " CONFORMANCE_FOLDER "/run_on_other_host";
}

Row Ranks(std::string name, const std::string& environment, const std::string& options) {
  return {.name = std::move(name),
          .client = "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " + environment +
                    " mpirun -n 2 " + Placement() + " --mca btl self " + options + " " + Program(),
          .client_says = {"220 messages, 2 sums and 2 puts are right"}};
}

std::vector<Row> Rows() {
  Row libfabric = Ranks(
      "Libfabric", "",
      "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm --mca osc pt2pt");
  libfabric.one_host = kLibfabricListensInside;
  return {
      Ranks("Ucx", "UCX_NET_DEVICES=softverbs0:1 UCX_TLS=rc_v,ud_v,self",
            "--mca pml ucx --mca osc ucx"),
      Ranks("UcxDatagrams", "UCX_NET_DEVICES=softverbs0:1 UCX_TLS=ud_v,self",
            "--mca pml ucx --mca osc ucx"),
      libfabric,
  };
}

INSTANTIATE_TEST_SUITE_P(OpenMpi, RowTest, ::testing::ValuesIn(Rows()), RowName);

}  // namespace
}  // namespace conformance
