#include "tests/common/etcd/etcd_processes.h"

#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "softverbs/tests/support/free_port.h"

namespace gannet {
namespace {

constexpr int kTries = 5;  // another process may take a port that was free
// Each member reserves two files of 64 MiB.
constexpr uint64_t kMemoryBytesMin = uint64_t{2} << 30;

// In memory if there is room, because etcd syncs its files at each step, and disks may be slow.
std::string NewFolder() {
  struct statvfs memory = {};
  const bool fits =
      statvfs("/dev/shm", &memory) == 0 && memory.f_bavail * memory.f_frsize >= kMemoryBytesMin;
  std::string folder = fits ? "/dev/shm/gannet-etcd-XXXXXX" : "/tmp/gannet-etcd-XXXXXX";
  if (mkdtemp(folder.data()) != nullptr) return folder;
  std::perror(folder.c_str());
  std::abort();
}

}  // namespace

// No other test program uses it: 127.64.0.0 to 127.127.255.255.
std::string EtcdProcesses::Address() {
  const auto pid = static_cast<uint32_t>(getpid());
  return absl::StrCat("127.", 64 + ((pid >> 16) & 63), ".", (pid >> 8) & 255, ".", pid & 255);
}

EtcdProcesses::EtcdProcesses(size_t count, std::vector<std::string> flags)
    : flags_(std::move(flags)) {
  for (int i = 0; i < kTries; ++i) {
    folder_ = NewFolder();
    if (StartAll(count)) return;
    for (const Member& member : members_) {
      std::fprintf(stderr, "etcd does not start: %s\n", member.process->Stderr().c_str());
    }
    members_.clear();
    std::filesystem::remove_all(folder_);
  }
  std::abort();
}

EtcdProcesses::~EtcdProcesses() {
  members_.clear();  // kills them
  std::filesystem::remove_all(folder_);
}

bool EtcdProcesses::StartAll(size_t count) {
  members_.resize(count);
  for (Member& member : members_) {
    member.client_port = test_support::FreePort();
    member.peer_port = test_support::FreePort();
  }
  for (size_t i = 0; i < count; ++i) Start(i);
  for (size_t i = 0; i < count; ++i) {
    if (!AwaitReady(i)) return false;
  }
  return true;
}

void EtcdProcesses::Start(size_t member) {
  std::string cluster;
  for (size_t i = 0; i < members_.size(); ++i) {
    absl::StrAppend(&cluster, i == 0 ? "" : ",", "m", i, "=", PeerUrl(i));
  }
  const bool tls = std::ranges::find(flags_, "--auto-tls") != flags_.end() ||
                   std::ranges::find(flags_, "--cert-file") != flags_.end();
  const std::string url = Url(member, tls ? "https" : "http");
  std::vector<std::string> argv = {
      "etcd", "--name", absl::StrCat("m", member), "--data-dir", DataFolder(member),
      "--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls",
      PeerUrl(member), "--initial-advertise-peer-urls", PeerUrl(member), "--initial-cluster",
      cluster, "--initial-cluster-token", folder_, "--logger", "zap", "--log-outputs", "stderr",
      // Short, so that a cluster is there soon. One member needs no time to hear of others.
      "--heartbeat-interval", members_.size() == 1 ? "10" : "100", "--election-timeout",
      members_.size() == 1 ? "100" : "1000"};
  argv.insert(argv.end(), flags_.begin(), flags_.end());
  members_[member].process =
      std::make_unique<test_support::ChildProcess>(test_support::ChildProcess::Options{
          .argv = std::move(argv), .streams = test_support::ChildProcess::Streams::kCaptured});
}

bool EtcdProcesses::AwaitReady(size_t member) const {
  return members_[member].process->AwaitStderr("serving client traffic");
}

std::string EtcdProcesses::Url(size_t member, const std::string& scheme) const {
  return absl::StrCat(scheme, "://", Address(), ":", members_[member].client_port);
}

std::vector<std::string> EtcdProcesses::Urls() const {
  std::vector<std::string> urls;
  for (size_t i = 0; i < members_.size(); ++i) urls.push_back(Url(i));
  return urls;
}

std::string EtcdProcesses::PeerUrl(size_t member) const {
  return absl::StrCat("http://", Address(), ":", members_[member].peer_port);
}

std::string EtcdProcesses::DataFolder(size_t member) const {
  return absl::StrCat(folder_, "/m", member);
}

void EtcdProcesses::Kill(size_t member) { members_[member].process->Kill(); }

void EtcdProcesses::Restart(size_t member) {
  Start(member);
  if (AwaitReady(member)) return;
  std::fprintf(stderr, "etcd does not start again: %s\n",
               members_[member].process->Stderr().c_str());
  std::abort();
}

}  // namespace gannet
