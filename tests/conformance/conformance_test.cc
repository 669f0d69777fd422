// Programs that nobody here wrote, unmodified, on softverbs: a row a run.
//
// A row fails when a program is not installed, does not end in time, does not exit with 0, or does
// not print what it should. A tool that is known to fail by its own fault now and then may be run a
// second time; the row says what the fault is. Nothing else is retried.

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <ostream>
#include <regex>
#include <string>
#include <thread>

#include "tests/conformance/tool_process.h"

namespace conformance {
namespace {

using std::chrono::seconds;

constexpr seconds kStartLimit(10);  // until a server listens
constexpr seconds kRunLimit(60);    // until a tool ends
constexpr int kClientsInTurn = 3;   // of a server that stays

enum class Server {
  kNone,    // the row is one program
  kTcp,     // a server that exchanges addresses over TCP
  kRdmaCm,  // a server that listens through rdma_cm
  kStays,   // the same, and it serves one client after the other until it is stopped
};

struct Row {
  const char* name;
  Server kind;
  const char* server;  // {p} is a free port
  const char* client;
  const char* server_says;  // regular expressions that the outputs must match somewhere
  const char* client_says;
  const char* quirk = nullptr;  // the tool's own fault that one retry is for
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.client; }

constexpr const char* kRpingQuirk =
    "rping destroys its event channel under its own thread, which may exit non-zero";
constexpr const char* kPerftestQuirk =
    "perftest -R connects twice and does not wait until its server listens the second time";
constexpr const char* kLatency = "t_typical";  // the header of perftest's latency table
constexpr const char* kBandwidth = "BW average";
constexpr const char* kDone = "[0-9]+ iters in [0-9.]+ seconds";

#define RPING(options) \
  "rping -s -a 127.0.0.1 -p {p} " options, "rping -c -a 127.0.0.1 -p {p} " options
#define PAIR(tool) tool " -p {p}", tool " -p {p} 127.0.0.1"

// clang-format off
constexpr Row kRows[] = {
  {"Devices", Server::kNone, "", "ibv_devices", "", "softverbs0"},
  {"DevInfo", Server::kNone, "", "ibv_devinfo -v", "", "hca_id:\\s+softverbs0[^]*PORT_ACTIVE"},

  {"Rping", Server::kRdmaCm, RPING("-C 3"), "", "", kRpingQuirk},
  {"RpingVerified", Server::kRdmaCm, RPING("-v -V -C 100"), "server ping data: rdma-ping-99", "ping data: rdma-ping-99", kRpingQuirk},
  {"RpingOwnQueuePair", Server::kRdmaCm, RPING("-q -v -C 10"), "server ping data: rdma-ping-9", "ping data: rdma-ping-9", kRpingQuirk},
  {"RpingLarge", Server::kRdmaCm, RPING("-S 65535 -V -C 10"), "", "", kRpingQuirk},
  {"RpingIpv6", Server::kRdmaCm, "rping -s -a ::1 -p {p} -v -C 3", "rping -c -a ::1 -p {p} -v -C 3", "server ping data: rdma-ping-2", "ping data: rdma-ping-2", kRpingQuirk},
  {"RpingWildcard", Server::kRdmaCm, "rping -s -p {p} -v -C 3", "rping -c -a 127.0.0.1 -p {p} -v -C 3", "server ping data: rdma-ping-2", "ping data: rdma-ping-2", kRpingQuirk},
  {"RpingPersistent", Server::kStays, "rping -s -P -a 127.0.0.1 -p {p} -v", "rping -c -a 127.0.0.1 -p {p} -v -C 10", "", "ping data: rdma-ping-9", kRpingQuirk},

  {"RdmaClientServer", Server::kRdmaCm, "rdma_server -s 127.0.0.1 -p {p}", "rdma_client -s 127.0.0.1 -p {p}", "rdma_server: end 0", "rdma_client: end 0"},
  {"Ucmatose", Server::kRdmaCm, "ucmatose -b 127.0.0.1 -p {p}", "ucmatose -s 127.0.0.1 -p {p}", "return status 0", "return status 0"},
  {"UcmatoseMany", Server::kRdmaCm, "ucmatose -b 127.0.0.1 -p {p} -c 100 -C 5", "ucmatose -s 127.0.0.1 -p {p} -c 100 -C 5", "return status 0", "return status 0"},
  {"UcmatoseMigrate", Server::kRdmaCm, "ucmatose -b 127.0.0.1 -p {p} -c 10 -m", "ucmatose -s 127.0.0.1 -p {p} -c 10 -m", "return status 0", "return status 0"},
  {"CmTime", Server::kStays, "cmtime -b 127.0.0.1 -p {p} -c 50", "cmtime -s 127.0.0.1 -p {p} -c 50", "", "disconnect"},

  {"RcPingpong", Server::kTcp, PAIR("ibv_rc_pingpong -g 0 -n 200"), kDone, kDone},
  {"RcPingpongEvents", Server::kTcp, PAIR("ibv_rc_pingpong -g 0 -n 200 -e"), kDone, kDone},
  {"RcPingpongTimestamps", Server::kTcp, PAIR("ibv_rc_pingpong -g 0 -n 200 -t"), kDone, kDone},
  {"RcPingpongNewSend", Server::kTcp, PAIR("ibv_rc_pingpong -g 0 -n 200 -N"), kDone, kDone},
  {"RcPingpongChecked", Server::kTcp, PAIR("ibv_rc_pingpong -g 0 -n 200 -c"), kDone, kDone},
  {"SrqPingpong", Server::kTcp, PAIR("ibv_srq_pingpong -g 0 -n 50"), kDone, kDone},
  {"SrqPingpongEvents", Server::kTcp, PAIR("ibv_srq_pingpong -g 0 -n 50 -e"), kDone, kDone},

  {"ReadLat", Server::kTcp, PAIR("ib_read_lat -F -n 200"), "", kLatency},
  {"WriteLat", Server::kTcp, PAIR("ib_write_lat -F -n 200"), kLatency, kLatency},
  {"SendLat", Server::kTcp, PAIR("ib_send_lat -F -n 200"), kLatency, kLatency},
  {"SendLatEvents", Server::kTcp, PAIR("ib_send_lat -F -n 200 -e"), kLatency, kLatency},
  {"AtomicLat", Server::kTcp, PAIR("ib_atomic_lat -F -n 200"), "", kLatency},
  {"AtomicLatFetchAdd", Server::kTcp, PAIR("ib_atomic_lat -F -n 200 -A FETCH_AND_ADD"), "", kLatency},
  {"ReadBandwidth", Server::kTcp, PAIR("ib_read_bw -F -n 200"), "", kBandwidth},
  {"WriteBandwidth", Server::kTcp, PAIR("ib_write_bw -F -n 200"), "", kBandwidth},
  {"SendBandwidth", Server::kTcp, PAIR("ib_send_bw -F -n 200"), "", kBandwidth},
  {"SendBandwidthSrq", Server::kTcp, PAIR("ib_send_bw -F -n 200 --use-srq -q 4"), "", kBandwidth},
  {"ReadBandwidthManyQueuePairs", Server::kTcp, PAIR("ib_read_bw -F -n 200 -q 8"), "", kBandwidth},
  {"AtomicBandwidth", Server::kTcp, PAIR("ib_atomic_bw -F -n 200"), "", kBandwidth},
  {"ReadLatCm", Server::kRdmaCm, PAIR("ib_read_lat -F -n 200 -R"), "", kLatency, kPerftestQuirk},
  {"WriteLatCm", Server::kRdmaCm, PAIR("ib_write_lat -F -n 200 -R"), kLatency, kLatency, kPerftestQuirk},
  {"SendLatCm", Server::kRdmaCm, PAIR("ib_send_lat -F -n 200 -R"), kLatency, kLatency, kPerftestQuirk},
  {"AtomicLatCm", Server::kRdmaCm, PAIR("ib_atomic_lat -F -n 200 -R"), "", kLatency, kPerftestQuirk},
};
// clang-format on

std::string WithPort(std::string command, int port) {
  for (size_t at; (at = command.find("{p}")) != std::string::npos;) {
    command.replace(at, 3, std::to_string(port));
  }
  return command;
}

bool Listens(Server kind, int port) {
  return kind == Server::kTcp ? TcpListens(port) : RdmaListens(port);
}

// Waits until the server listens; false if it ended before, or took too long.
bool WaitUntilReady(Server kind, int port, ToolProcess* server) {
  const auto deadline = std::chrono::steady_clock::now() + kStartLimit;
  while (!Listens(kind, port)) {
    if (server->Ended() || std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

bool Says(const std::string& output, const char* pattern) {
  return std::regex_search(output, std::regex(pattern));
}

// What is wrong with a tool that should have ended; empty if nothing is.
std::string Judge(const char* who, ToolProcess* tool, const char* says) {
  std::string complaint;
  if (!tool->WaitForEnd(kRunLimit)) {
    tool->Kill();
    complaint = "did not end";
  } else if (tool->exit_code() != 0) {
    complaint = "exited with " + std::to_string(tool->exit_code());
  } else if (!Says(tool->Output(), says)) {
    complaint = "does not say \"" + std::string(says) + "\"";
  }
  if (complaint.empty()) return "";
  return std::string(who) + " " + complaint + "; its output:\n" + tool->Output() + "\n";
}

// One run of a row: what went wrong, or an empty string.
std::string RunRow(const Row& row) {
  const int port = FreePort();
  std::optional<ToolProcess> server;
  if (row.kind != Server::kNone) {
    server.emplace(WithPort(row.server, port));
    if (!WaitUntilReady(row.kind, port, &*server)) {
      return "the server does not listen; its output:\n" + server->Output();
    }
  }
  for (int left = row.kind == Server::kStays ? kClientsInTurn : 1; left > 0; left--) {
    ToolProcess client(WithPort(row.client, port));
    const std::string complaint = Judge("the client", &client, row.client_says);
    // Then the server need not be waited for: it may never end.
    if (!complaint.empty()) return complaint + (server ? "the server:\n" + server->Output() : "");
  }
  if (row.kind == Server::kNone) return "";
  if (row.kind != Server::kStays) return Judge("the server", &*server, row.server_says);
  return server->Ended() ? "the server ended:\n" + server->Output() : "";
}

class ConformanceTest : public ::testing::TestWithParam<Row> {};

TEST_P(ConformanceTest, RunsOnSoftverbs) {
  const Row& row = GetParam();
  const std::string program = std::string(row.client).substr(0, std::string(row.client).find(' '));
  ASSERT_TRUE(Installed(program)) << program << ": `./dev deps` installs it";
  std::string complaint = RunRow(row);
  if (!complaint.empty() && row.quirk != nullptr) {
    std::cout << "second try (" << row.quirk << ") after:\n" << complaint << std::endl;
    complaint = RunRow(row);
  }
  EXPECT_TRUE(complaint.empty()) << complaint;
}

INSTANTIATE_TEST_SUITE_P(Tools, ConformanceTest, ::testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace conformance
