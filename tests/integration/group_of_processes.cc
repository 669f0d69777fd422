#include "tests/integration/group_of_processes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

constexpr char kRegister[] = "/gannet/c/groups/g1";

// "n1" is member 0.
int IndexOf(const std::string& node) { return node.at(1) - '1'; }

}  // namespace

std::string FreeEndpoint() {
  ServerProcess other;
  other.Kill();
  return other.endpoint();
}

GroupOfProcesses::GroupOfProcesses(int lease_ms, const std::function<std::string(int)>& flag,
                                   const std::vector<std::string>& more, const std::string& policy)
    : caller_(etcd_.Urls()) {
  const nlohmann::json config = {
      {"format", 1}, {"groups", {"g1"}}, {"partitions", std::vector<int>(1024, 0)}};
  const nlohmann::json group = {{"history", "00000000000000ff"},
                                {"epoch", 0},
                                {"primary", nullptr},
                                {"in_sync", nlohmann::json::array()},
                                {"members", {"n1", "n2", "n3"}},
                                {"lease_ms", lease_ms},
                                {"min_copies", 1},
                                {"ring_bytes", 16 << 20}};
  caller_.Put("/gannet/c/config", config.dump());
  caller_.Put(kRegister, group.dump());
  if (!policy.empty()) caller_.Put("/gannet/c/policies/g1", policy);
  for (int i = 0; i < kMembers; ++i) {
    std::vector<std::string> flags = {"--cluster=c", "--etcd=" + etcd_.Url(0),
                                      absl::StrCat("--name=n", i + 1),
                                      "--listen=" + FreeEndpoint()};
    if (flag) flags.push_back(flag(i));
    flags.insert(flags.end(), more.begin(), more.end());
    members_.push_back(std::make_unique<ServerProcess>(std::move(flags)));
  }
}

std::string GroupOfProcesses::Endpoint() const {
  std::string endpoint = "cluster:";
  for (const auto& member : members_) {
    absl::StrAppend(&endpoint, endpoint.back() == ':' ? "" : ",", member->endpoint());
  }
  return endpoint;
}

GroupOfProcesses::Register GroupOfProcesses::Read() {
  Register now;
  const auto answer = caller_.Range(kRegister);
  if (!answer.ok() || answer->items.empty()) return now;
  const auto parsed = nlohmann::json::parse(answer->items[0].value, nullptr, false);
  if (!parsed.is_object()) return now;
  now.epoch = parsed["epoch"].get<uint64_t>();
  if (parsed["primary"].is_object()) {
    now.primary = IndexOf(parsed["primary"]["node"].get<std::string>());
  }
  for (const auto& one : parsed["in_sync"]) {
    now.in_sync.push_back(IndexOf(one["node"].get<std::string>()));
  }
  return now;
}

GroupOfProcesses::Register GroupOfProcesses::AwaitInSync(size_t members, uint64_t epoch_min) {
  const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
  Register now = Read();
  while (now.epoch < epoch_min || now.primary < 0 || now.in_sync.size() < members) {
    if (std::chrono::steady_clock::now() > give_up) {
      ADD_FAILURE() << "epoch " << now.epoch << ", primary " << now.primary << ", "
                    << now.in_sync.size() << " in sync";
      break;
    }
    // The register is polled, and etcd shares the machine's cores with the members.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    now = Read();
  }
  return now;
}

GroupOfProcesses::Register GroupOfProcesses::AwaitExactly(size_t members) {
  const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
  Register now = Read();
  while (now.in_sync.size() != members) {
    if (std::chrono::steady_clock::now() > give_up) {
      ADD_FAILURE() << now.in_sync.size() << " in sync";
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    now = Read();
  }
  return now;
}

void GroupOfProcesses::AwaitAnnouncedAgain(int i) {
  const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
  const auto again = [&] {
    const auto node = caller_.Range(absl::StrCat("/gannet/c/nodes/n", i + 1));
    const auto group = caller_.Range(kRegister);
    if (!node.ok() || node->items.empty() || !group.ok() || group->items.empty()) return false;
    const auto parsed = nlohmann::json::parse(node->items[0].value, nullptr, false);
    const std::string incarnation = parsed["incarnation"].get<std::string>();
    return group->items[0].value.find(incarnation) == std::string::npos;
  };
  while (!again()) {
    if (std::chrono::steady_clock::now() > give_up) {
      ADD_FAILURE() << "n" << i + 1 << " is not announced";
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace gannet
