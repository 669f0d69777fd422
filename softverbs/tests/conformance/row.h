#ifndef SOFTVERBS_TESTS_CONFORMANCE_ROW_H_
#define SOFTVERBS_TESTS_CONFORMANCE_ROW_H_

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace conformance {

enum class Server {
  kNone,    // the row is one program
  kTcp,     // a server that exchanges addresses over TCP
  kRdmaCm,  // a server that listens through rdma_cm
  kStays,   // the same, and it serves one client after the other until it is stopped
  kGroup,   // no server, but a member of the multicast group {g}
};

// What a program's output must match: a regular expression that is found somewhere, or exactly
// `times` times if that is not 0.
struct Says {
  std::string pattern;
  int times = 0;
};

// A run of an unmodified third-party program on softverbs. Under two_hosts.py, server and client
// run on two hosts, and 127.0.0.1 and ::1 in their commands stand for the server's addresses. There
// must be one of each kind in the command, or none.
//
// A row fails if a program is not installed, does not end in time, does not exit with 0, does not
// print what it should, or complains about the data it received. A tool that is known to fail now
// and then by its own fault may be run a few times; the row names the fault. Nothing else is
// retried.
struct Row {
  std::string name;
  Server kind = Server::kNone;
  std::string server = {};  // {p} is a free port, {g} a multicast group of its own
  std::string client = {};
  int own_port = 0;  // where it listens, if that cannot be chosen
  Says server_says = {};
  Says client_says = {};
  const char* quirk = nullptr;     // the tool's own fault that the retries are for
  bool refused = false;            // both must fail, by themselves and with these words
  const char* one_host = nullptr;  // why it cannot run between two hosts
};

inline void PrintTo(const Row& row, std::ostream* out) { *out << row.client; }

inline constexpr const char* kMulticastStays = "multicast does not leave the host";
inline constexpr const char* kLibfabricListensInside =
    "libfabric's listener takes 127.0.0.1 for its address if a device has it, as softverbs does, "
    "and "
    "tells it to the other host";

// Returns a row with the same options for client and server, as most tools have them.
Row Pair(std::string name, Server kind, const std::string& command, Says says);

// The tests of all rows of a package: INSTANTIATE_TEST_SUITE_P(Package, RowTest, ...).
class RowTest : public ::testing::TestWithParam<Row> {};

inline std::string RowName(const ::testing::TestParamInfo<Row>& info) { return info.param.name; }

}  // namespace conformance

#endif  // SOFTVERBS_TESTS_CONFORMANCE_ROW_H_
