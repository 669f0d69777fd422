#ifndef SOFTVERBS_TESTS_NIC_REMOTE_FIXTURE_H_
#define SOFTVERBS_TESTS_NIC_REMOTE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "softverbs/tests/support/key_file.h"
#include "softverbs/tests/support/role_process.h"
#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {

// Two hosts that SOFTVERBS_NET joins. The test is on the one, its child processes are on the other.
// Under two_hosts.py they are two network namespaces. Otherwise both are addresses of 127.0.0.0/8,
// which needs no right and no second namespace.
struct Hosts {
  std::string own = "127.0.0.2";
  std::string peer = "127.0.0.3";
  std::string peer_namespace;  // its file; empty if both share one

  static Hosts FromEnvironment();
};

// Moves the calling thread, and all that it starts later, to the other host. Sets SOFTVERBS_NET.
void EnterPeerHost(uint16_t port);

// Gives all processes of this test a key, and a port of their own.
struct RemoteEnvironment : testing::Environment {
  void SetUp() override;
  void TearDown() override { key.reset(); }

  std::unique_ptr<test_support::KeyFile> key;
  uint16_t port = 0;
};
RemoteEnvironment& TheEnvironment();

enum class Key : int { kSame, kNone, kOther };

struct TargetOptions {
  uint16_t port = 0;
  Key key = Key::kSame;
  uint32_t slot = 0;  // 0: any
  ConnectOptions connect;
};

// What the child process does for the test.
enum class Order : int {
  kWord,         // answers its first word
  kSecondWord,   // answers its second word
  kPostReceive,  // posts a receive, answers 0
  kRenew,        // makes a new queue pair, and exchanges addresses as at the start
};

constexpr uint8_t kPattern = 99;

// (3 + 1) * 268 ms. The packets of such a link live for three quarters of that. For requests that
// fail: on a busy machine even an answer may take longer.
const ConnectOptions kPatient = {.retry_cnt = 3, .timeout = 16};
inline constexpr int64_t kPatientNs = 4 * (int64_t{4096} << 16);
// 17 s, for requests that are answered.
const ConnectOptions kVeryPatient = {.retry_cnt = 7, .timeout = 19};

class RemoteTest : public ::testing::Test {
 protected:
  // Starts the child, and connects to it.
  void Start(const ConnectOptions& connect = kVeryPatient, Key key = Key::kSame, uint32_t slot = 0);
  // Starts the child and connects with kPatient, until the peer answers. The link then has a young
  // tick, and sends at once.
  void StartPatient();
  // Connects with a new queue pair of the same child.
  void Renew(const ConnectOptions& connect);
  // Does so until the peer answers, for 30 s at most.
  void RenewUntilAnswered(const ConnectOptions& connect);
  // Sends an order, and returns the answer.
  uint64_t Do(Order order);
  ibv_wc_status Read(size_t length = 64);
  // Is called when the child listens, before the two connect.
  virtual void BeforeConnecting() {}
  // Connects a socket to the peer's port.
  static int Stranger();

  Owned<ibv_context> device_ = OpenDevice();
  std::unique_ptr<test_support::RoleProcess> child_;
  Address peer_;
  std::unique_ptr<Side> side_;

 private:
  void Exchange(const ConnectOptions& connect);
};

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_NIC_REMOTE_FIXTURE_H_
