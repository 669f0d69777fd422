// perftest: every tool with every option that it has of a list. Combinations of options run with
// one tool of each kind.

#include "softverbs/tests/conformance/row.h"

namespace conformance {
namespace {

constexpr const char* kConnectQuirk =
    "perftest -R: the client connects without waiting until the server listens. If it is refused, "
    "it tries again with ids that it destroyed, and crashes";

constexpr int kIterations = 200;
constexpr int kIterationsOfEach = 20;  // with -a
constexpr int kSizes = 23;             // with -a: 2, 4, ... 2^23 bytes

enum Traits : unsigned {
  kBandwidth = 1,
  kLatency = 2,
  kSends = 4,
  kSizesVary = 8,  // has -a
  kEvents = 16,    // has -e
  kWrites = 32,
  kCombined = 64,  // runs combinations of options, and all sizes, too
};

struct Tool {
  const char* program;
  const char* name;
  int bytes;  // of a message, by default
  unsigned traits;
};
constexpr Tool kTools[] = {
    {"ib_read_lat", "ReadLat", 2, kLatency | kSizesVary | kEvents | kCombined},
    {"ib_write_lat", "WriteLat", 2, kLatency | kSizesVary | kWrites},
    {"ib_send_lat", "SendLat", 2, kLatency | kSizesVary | kEvents | kSends},
    {"ib_atomic_lat", "AtomicLat", 8, kLatency | kEvents},
    {"ib_read_bw", "ReadBw", 65536, kBandwidth | kSizesVary | kEvents},
    {"ib_write_bw", "WriteBw", 65536, kBandwidth | kSizesVary | kWrites | kCombined},
    {"ib_send_bw", "SendBw", 65536, kBandwidth | kSizesVary | kEvents | kSends | kCombined},
    {"ib_atomic_bw", "AtomicBw", 8, kBandwidth | kEvents},
};

struct Option {
  const char* name;
  const char* flags;
  unsigned needs;  // traits
  int queue_pairs = 1;
};
constexpr Option kOptions[] = {
    {"", "", 0},
    {"Cm", "-R", 0},
    {"OldPost", "--use_old_post_send", 0},
    {"Events", "-e", kEvents},
    {"EventsCm", "-e -R", kEvents | kCombined},
    {"BothWays", "-b", kBandwidth},
    {"BothWaysCm", "-b -R", kBandwidth | kCombined},
    {"BothWaysEvents", "-b -e", kBandwidth | kEvents | kCombined},
    {"QueuePairs", "-q 8", kBandwidth, 8},
    {"QueuePairsCm", "-q 8 -R", kBandwidth | kCombined, 8},
    {"Srq", "--use-srq", kSends},
    {"SrqEvents", "--use-srq -e", kSends},
    {"SrqQueuePairs", "--use-srq -q 8", kSends | kBandwidth, 8},
};

bool Contains(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}

Row Run(const Tool& tool, const std::string& name, const std::string& flags, Says says) {
  const bool cm = Contains(flags, "-R");
  Row row = Pair(tool.name + name, cm ? Server::kRdmaCm : Server::kTcp,
                 std::string(tool.program) + " -F " + flags, std::move(says));
  row.server_says = {"", 0};  // a server whose part is passive prints no table
  if (cm) row.quirk = kConnectQuirk;
  if (Contains(flags, "-g")) row.one_host = kMulticastStays;
  return row;
}

// Returns a line of the table that a tool prints: bytes, iterations and figures.
std::string Line(const std::string& bytes, int iterations) {
  return "\n\\s*" + bytes + "\\s+" + std::to_string(iterations) + "\\s+[0-9]+\\.";
}

// A run of fixed length.
Row Run(const Tool& tool, const Option& option) {
  const std::string flags = std::string(option.flags) + " -n " + std::to_string(kIterations);
  return Run(tool, option.name, flags,
             {Line(std::to_string(tool.bytes), kIterations * option.queue_pairs), 1});
}

// Returns rows for the unreliable types of queue pair. A datagram that finds no receive is lost,
// and the tool waits for it for ever. So no more datagrams are sent than a queue holds by default.
std::vector<Row> UnreliableRows() {
  constexpr int kMtu = 4096;
  constexpr int kUpToMtu = 12;  // sizes
  constexpr Tool kDatagrams[] = {{"ib_send_lat", "SendLat", 2, kLatency | kEvents},
                                 {"ib_send_bw", "SendBw", kMtu, kBandwidth | kEvents}};
  constexpr Option kDatagramOptions[] = {
      {"Ud", "-c UD", 0},
      {"UdCm", "-c UD -R", 0},
      {"UdEvents", "-c UD -e", 0},
      {"UdOldPost", "-c UD --use_old_post_send", 0},
      {"UdBothWays", "-c UD -b", kBandwidth},
      {"UdQueuePairs", "-c UD -q 8", kBandwidth, 8},
      {"UdSrq", "-c UD --use-srq", 0},
      // Its groups are IPv6 addresses, and it does not send to them from an IPv4 one.
      {"UdMulticast", "-c UD -g -x {gid6}", 0},
  };
  std::vector<Row> rows;
  for (const Tool& tool : kDatagrams) {
    for (const Option& option : kDatagramOptions) {
      if ((tool.traits & option.needs) == option.needs) rows.push_back(Run(tool, option));
    }
  }
  const std::string flags = "-c UD -a -n " + std::to_string(kIterationsOfEach);
  rows.push_back(
      Run(kDatagrams[0], "UdAllSizes", flags, {Line("[0-9]+", kIterationsOfEach), kUpToMtu}));
  for (const Tool& tool : kTools) {
    if ((tool.traits & (kSends | kWrites)) != 0) rows.push_back(Run(tool, {"Uc", "-c UC", 0}));
  }
  return rows;
}

std::vector<Row> Rows() {
  std::vector<Row> rows = UnreliableRows();
  for (const Tool& tool : kTools) {
    for (const Option& option : kOptions) {
      if ((tool.traits & option.needs) == option.needs) rows.push_back(Run(tool, option));
    }
    constexpr unsigned kAllSizes = kSizesVary | kCombined;  // takes 6 s
    if ((tool.traits & kAllSizes) != kAllSizes) continue;
    const std::string flags = "-a -n " + std::to_string(kIterationsOfEach);
    rows.push_back(Run(tool, "AllSizes", flags, {Line("[0-9]+", kIterationsOfEach), kSizes}));
  }
  const Says added = {Line("8", kIterations), 1};
  const std::string flags = "-A FETCH_AND_ADD -n " + std::to_string(kIterations);
  for (const Tool& tool : kTools) {
    if (tool.bytes == 8) rows.push_back(Run(tool, "FetchAdd", flags, added));
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Perftest, RowTest, ::testing::ValuesIn(Rows()), RowName);

}  // namespace
}  // namespace conformance
