#include "softverbs/tests/conformance/row.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "softverbs/tests/conformance/ports.h"
#include "softverbs/tests/support/child_process.h"
#include "softverbs/tests/support/free_port.h"

namespace conformance {
namespace {

using std::chrono::seconds;
using test_support::ChildProcess;

constexpr seconds kStartLimit(10);  // until a server listens
constexpr seconds kRunLimit(120);   // until a tool ends; only a hang takes so long
constexpr int kClientsInTurn = 3;   // of a server that stays
// Runs of a row whose tool has a fault. It loses a race if the machine is busy, and then it may
// lose it twice in a row.
constexpr int kTriesWithQuirk = 4;

// What a tool prints if it received other bytes than were sent.
constexpr const char* kComplaint = "invalid data in page|data mismatch";

std::string Replaced(std::string command, const std::string& word, const std::string& by) {
  for (size_t at = 0; (at = command.find(word, at)) != std::string::npos; at += by.size()) {
    command.replace(at, word.size(), by);
  }
  return command;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, separator);) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

// Returns the first index of a GID that is no IPv4 address, or "none".
std::string Ipv6GidIndex() {
  ChildProcess finds({.argv = {test_support::ProgramPath("softverbs-run"), "sh", "-c",
                               "cd /sys/class/infiniband/softverbs0/ports/1/gids && "
                               "grep -L ^0000:0000:0000:0000:0000:ffff: * | sort -n | head -n 1"},
                      .streams = ChildProcess::Streams::kCaptured});
  finds.Wait(kStartLimit);
  const std::vector<std::string> lines = Split(finds.Stdout(), '\n');
  return lines.empty() ? "none" : lines.front();
}

std::string WithPort(std::string command, int port) {
  if (command.find("{gid6}") != std::string::npos) {
    command = Replaced(command, "{gid6}", Ipv6GidIndex());
  }
  return Replaced(Replaced(command, "{p}", std::to_string(port)), "{g}", GroupOf(port));
}

bool Matches(const std::string& output, const Says& says) {
  const std::regex pattern(says.pattern);
  if (says.times == 0) return std::regex_search(output, pattern);
  const auto first = std::sregex_iterator(output.begin(), output.end(), pattern);
  return std::distance(first, std::sregex_iterator()) == says.times;
}

// Returns whether a program of this name is in PATH, or at this absolute path.
bool Installed(const std::string& program) {
  if (program.starts_with("/")) return access(program.c_str(), X_OK) == 0;
  const char* path = getenv("PATH");
  for (const std::string& folder : Split(path == nullptr ? "" : path, ':')) {
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Which of two hosts a program runs on.
enum class Host { kServers, kClients };

// Whether there are two: this test runs under two_hosts.py, on the server's.
bool TwoHosts() { return getenv("TWO_HOSTS_B_NET") != nullptr; }

// Makes the program run on one of two hosts, and reach the other.
void PutOnHost(Host host, ChildProcess::Options* options) {
  bool ipv6 = false;
  for (std::string& word : options->argv) {
    ipv6 = ipv6 || word == "::1";
    word =
        word == "::1" ? getenv("TWO_HOSTS_A6") : Replaced(word, "127.0.0.1", getenv("TWO_HOSTS_A"));
  }
  const std::string own = std::string("TWO_HOSTS_") + (host == Host::kServers ? "A" : "B");
  options->environment.push_back(std::string("SOFTVERBS_NET=") +
                                 getenv((own + (ipv6 ? "6" : "")).c_str()));
  if (host == Host::kServers) return;
  const std::string into = std::string("--net=") + getenv("TWO_HOSTS_B_NET");
  options->argv.insert(options->argv.begin(), {"nsenter", into});
}

// Runs `command`, words separated by blanks, on softverbs.
ChildProcess::Options OnSoftverbs(const std::string& command, Host host) {
  std::vector<std::string> argv = Split(command, ' ');
  argv.insert(argv.begin(), test_support::ProgramPath("softverbs-run"));
  ChildProcess::Options options{.argv = argv, .streams = ChildProcess::Streams::kCaptured};
  if (TwoHosts()) PutOnHost(host, &options);
  return options;
}

// Returns its standard output, and then its standard error, which would otherwise split lines of
// the former.
std::string OutputOf(const ChildProcess& tool) { return tool.Stdout() + tool.Stderr(); }

bool Ended(ChildProcess* tool) { return tool->Wait(seconds(0)).has_value(); }

// No tool exits with a code like this by itself.
bool Crashed(int exit_code) {
  return exit_code > test_support::KilledBy(0) && exit_code <= test_support::KilledBy(SIGRTMAX);
}

bool Ready(const Row& row, int port) {
  if (row.kind == Server::kGroup) return GroupHasMember(port);
  return row.kind == Server::kTcp ? TcpListens(port) : RdmaListens(port);
}

// Waits until the server listens. Returns false if it ended before, or took too long.
bool WaitUntilReady(const Row& row, int port, ChildProcess* server) {
  const auto deadline = std::chrono::steady_clock::now() + kStartLimit;
  while (!Ready(row, port)) {
    if (Ended(server) || std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// How a tool may end.
enum class Ending { kWell, kRefused };

// Returns what is wrong with a tool that should have ended, or an empty text.
std::string Judge(const char* who, ChildProcess* tool, const Says& says, Ending ending) {
  std::string complaint;
  const std::optional<int> code = tool->Wait(kRunLimit);
  if (!code.has_value()) {
    tool->Kill();
    complaint = "did not end";
  } else if (ending == Ending::kWell && *code != 0) {
    complaint = "exited with " + std::to_string(*code);
  } else if (ending == Ending::kRefused && (*code == 0 || Crashed(*code))) {
    complaint = "should have been refused, but exited with " + std::to_string(*code);
  } else if (!Matches(OutputOf(*tool), says)) {
    complaint = "does not say \"" + says.pattern + "\"";
    if (says.times != 0) complaint += " " + std::to_string(says.times) + " times";
  } else if (Matches(OutputOf(*tool), {kComplaint})) {
    complaint = "received wrong data";
  }
  if (complaint.empty()) return "";
  return std::string(who) + " " + complaint + "; its output:\n" + OutputOf(*tool) + "\n";
}

// Runs a row once. Returns what went wrong, or an empty text.
std::string RunRow(const Row& row) {
  const int port = row.own_port != 0 ? row.own_port : test_support::FreePort();
  std::optional<ChildProcess> server;
  if (row.kind != Server::kNone) {
    server.emplace(OnSoftverbs(WithPort(row.server, port), Host::kServers));
    if (!WaitUntilReady(row, port, &*server)) {
      return "the server does not listen; its output:\n" + OutputOf(*server);
    }
  }
  // A row of one program may start others on the other host, and then begins on the first.
  const Host client_host = row.kind == Server::kNone ? Host::kServers : Host::kClients;
  const Ending ending = row.refused ? Ending::kRefused : Ending::kWell;
  for (int left = row.kind == Server::kStays ? kClientsInTurn : 1; left > 0; left--) {
    ChildProcess client(OnSoftverbs(WithPort(row.client, port), client_host));
    const std::string complaint = Judge("the client", &client, row.client_says, ending);
    // Does not wait for the server, which may never end.
    if (!complaint.empty()) return complaint + (server ? "the server:\n" + OutputOf(*server) : "");
  }
  if (row.kind == Server::kNone) return "";
  if (row.kind != Server::kStays) {
    return Judge("the server", &*server, row.server_says, ending);
  }
  return Ended(&*server) ? "the server ended:\n" + OutputOf(*server) : "";
}

// Returns the name of the program that a command runs, behind what it puts into the environment.
std::string ProgramOf(const std::string& command) {
  std::istringstream words(command);
  std::string word;
  while (words >> word && (word == "env" || word.find('=') != std::string::npos)) {
  }
  return word;
}

}  // namespace

Row Pair(std::string name, Server kind, const std::string& command, Says says) {
  Row row{.name = std::move(name), .kind = kind};
  row.server = command + " -p {p}";
  row.client = command + " -p {p} 127.0.0.1";
  row.server_says = row.client_says = std::move(says);
  return row;
}

TEST_P(RowTest, RunsOnSoftverbs) {
  const Row& row = GetParam();
  if (TwoHosts() && row.one_host != nullptr) GTEST_SKIP() << row.one_host;
  const std::string program = ProgramOf(row.client);
  ASSERT_TRUE(Installed(program)) << program << ": `./dev deps` installs it";
  std::string complaint = RunRow(row);
  const int tries = row.quirk != nullptr ? kTriesWithQuirk : 1;
  for (int left = tries - 1; left > 0 && !complaint.empty(); left--) {
    std::cout << "another try (" << row.quirk << ") after:\n" << complaint << std::endl;
    complaint = RunRow(row);
  }
  EXPECT_TRUE(complaint.empty()) << complaint;
}

}  // namespace conformance
