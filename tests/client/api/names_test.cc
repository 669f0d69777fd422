// Clients of servers that DNS has the addresses of.

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/client/api/patient_options.h"
#include "tests/common/rdma/test_device.h"
#include "tests/support/fake_hosts.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using test_support::SetFakeHost;

constexpr char kNobody[] = "127.0.0.9";

std::string HostOf(const ServerProcess& server) {
  return server.endpoint().substr(0, server.endpoint().rfind(':'));
}
std::string WithName(const std::string& name, const ServerProcess& server) {
  return name + server.endpoint().substr(server.endpoint().rfind(':'));
}

std::unique_ptr<Client> Connect(std::vector<std::string> endpoints) {
  auto client = Client::Connect(std::move(endpoints), PatientOptions());
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

TEST(NamesTest, AllAddressesOfANameAreTried) {
  ServerProcess server;
  SetFakeHost("several.example", {kNobody, HostOf(server)});
  for (const char* kind : {"", "cluster:"}) {
    auto client = Connect({kind + WithName("several.example", server)});
    ASSERT_NE(client, nullptr);
    EXPECT_TRUE(client->Put("key", "value").ok());
  }
}

// As a pod that is restarted: DNS has another address for it than when the client began.
TEST(NamesTest, AServerIsFoundWhereItsNameIsNow) {
  ServerProcess stays, moves;
  SetFakeHost("moves.example", {kNobody});
  auto client = Connect({stays.endpoint(), WithName("moves.example", moves)});
  ASSERT_NE(client, nullptr);
  EXPECT_FALSE(client->Info()[1].connected);
  SetFakeHost("moves.example", {HostOf(moves)});
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!client->Ping().ok() && std::chrono::steady_clock::now() < give_up) continue;
  EXPECT_TRUE(client->Info()[1].connected);
}

}  // namespace
}  // namespace gannet
