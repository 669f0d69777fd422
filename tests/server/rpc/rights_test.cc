// What a client's device may do to the server's memory: every right on every memory region that the
// server registers, from every kind of session, by a client that knows all addresses and rkeys.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "common/auth/auth_file.h"
#include "common/auth/handshake_mac.h"
#include "common/base/clocks.h"
#include "common/protocol/heats.h"
#include "softverbs/tests/support/key_file.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

// A registration of this process, which is server and client.
struct Registered {
  ibv_pd* pd;
  uint64_t address;
  uint64_t bytes;
  uint32_t rkey;
};
std::vector<Registered>& AllRegistered() {
  static std::vector<Registered> all;
  return all;
}

ibv_mr* Note(ibv_mr* mr) {
  if (mr != nullptr) {
    const auto address = reinterpret_cast<uint64_t>(mr->addr);
    AllRegistered().push_back({mr->pd, address, mr->length, mr->rkey});
  }
  return mr;
}

template <class F>
F* Real(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace gannet

// In place of the library's, so that the test knows all registrations.
#undef ibv_reg_mr
extern "C" ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t bytes, int access) {
  return gannet::Note(gannet::Real<decltype(ibv_reg_mr)>("ibv_reg_mr")(pd, address, bytes, access));
}
extern "C" ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t bytes, uint64_t iova,
                                    unsigned access) {
  return gannet::Note(gannet::Real<decltype(ibv_reg_mr_iova2)>("ibv_reg_mr_iova2")(
      pd, address, bytes, iova, access));
}

namespace gannet {
namespace {

constexpr char kKeys[] =
    "1 000102030405060708090a0b0c0d0e0f\n"
    "2 202122232425262728292a2b2c2d2e2f read\n";

// Not what a word of the server's memory ever is.
constexpr uint64_t kStrange = 0x5a5a'0bad'0bad'5a5a;

enum class Session : uint8_t { kWithoutKey, kMayWrite, kMayRead };
constexpr std::array kSessions = {Session::kWithoutKey, Session::kMayWrite, Session::kMayRead};

constexpr std::array kOpcodes = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                 IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
bool IsAtomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

class RightsTest : public ServerTest {
 protected:
  void Start(bool with_keys, std::optional<LockMode> lock_mode = std::nullopt) {
    AllRegistered().clear();
    StartServer([&](Server::Options* options) {
      if (with_keys) options->auth_file = file_.path();
      options->lock_mode = lock_mode;
      options->evict = true;         // registers the heats, too
      options->silence_ms = 60'000;  // peers of these tests send no heartbeats
    });
  }
  bool Connect(RawPeer& peer, Session session) {
    ConnectRequest request = NewConnectRequest();
    if (session != Session::kWithoutKey) {
      const auto keys = AuthFile::Open(file_.path());
      request.time_ms = MachineWallTime().ms();
      request.nonce = UnpredictableNonce();
      SignRequest(keys->keys()[session == Session::kMayWrite ? 0 : 1], address().NetworkBytes(),
                  &request);
    }
    return peer.Connect(request);
  }
  // The server's registrations: those in the protection domain of its region. A client that may
  // write is told two of them.
  std::vector<Registered> FindMemory(Session session) {
    RawPeer peer(this);
    EXPECT_TRUE(Connect(peer, session));
    grant_ = peer.grant();
    HeatsReply heats{};
    const auto reply = peer.Call(peer.Header(Opcode::kHeats));
    std::memcpy(&heats, reply.value().value.data(), sizeof(heats));
    heats_rkey_ = heats.rkey;
    const ibv_pd* pd = nullptr;
    for (const Registered& it : AllRegistered()) {
      if (it.address == grant_.region_address && it.rkey == grant_.region_rkey) pd = it.pd;
    }
    std::vector<Registered> memory;
    for (const Registered& it : AllRegistered()) {
      if (it.pd == pd) memory.push_back(it);
    }
    return memory;
  }
  struct Tried {
    bool done;     // the device executed it
    bool changed;  // the word, which is put back
  };
  Tried Try(Session session, ibv_wr_opcode opcode, uint64_t address, uint32_t rkey) {
    auto* const word = reinterpret_cast<volatile uint64_t*>(address);
    RawPeer peer(this);
    EXPECT_TRUE(Connect(peer, session));
    const uint64_t before = *word;
    const bool done = peer.OnWord(opcode, address, rkey, kStrange).has_value();
    const bool changed = *word != before;
    if (changed) *word = before;
    EXPECT_EQ(peer.broken(), !done);  // a client that tried what is refused loses its connection
    return {done, changed};
  }
  // Tries everything on the first and the last word of each piece of memory. Expects atomics to
  // work on the lock words only, and only if `swaps`; READs of what is shown; and nothing else.
  void TryAll(Session session, const std::vector<Registered>& memory, bool swaps) {
    for (const Registered& it : memory) {
      const bool locks = it.address == grant_.lock_address;
      const bool shown = locks || it.rkey == grant_.region_rkey || it.rkey == heats_rkey_;
      std::vector<uint64_t> words = {it.address};
      if (TestSlowness() == 1) words.push_back(it.address + it.bytes / 8 * 8 - 8);
      for (const uint64_t word : words) {
        for (const ibv_wr_opcode opcode : kOpcodes) {
          SCOPED_TRACE(::testing::Message()
                       << "session " << static_cast<int>(session) << ", opcode " << opcode
                       << ", memory of " << it.bytes << " bytes");
          const bool allowed =
              opcode == IBV_WR_RDMA_READ ? shown : locks && swaps && IsAtomic(opcode);
          const Tried tried = Try(session, opcode, word, it.rkey);
          EXPECT_EQ(tried.done, allowed);
          EXPECT_EQ(tried.changed, allowed && IsAtomic(opcode));
        }
      }
    }
  }

  test_support::KeyFile file_{kKeys};
  Grant grant_{};  // of a client that is told everything
  uint32_t heats_rkey_ = 0;
};

TEST_F(RightsTest, TheDeviceAllowsWhatTheKeyAllowsAndNothingElse) {
  for (const Session session : kSessions) {
    Start(session != Session::kWithoutKey);
    const std::vector<Registered> memory =
        FindMemory(session == Session::kMayRead ? Session::kMayWrite : session);
    ASSERT_GE(memory.size(), 7u) << "region, locks, heats, receives, replies, two kinds of staging";
    const bool nic_swaps = grant_.lock_mode == static_cast<uint8_t>(LockMode::kNicCas);
    TryAll(session, memory, nic_swaps && session != Session::kMayRead);
    StopServer();
  }
}

// The lock words' registration allows atomics here: the server's own queue pair swaps them.
TEST_F(RightsTest, WhereTheServerSwapsNoClientDoes) {
  if (!TestDevice().caps.has_atomics()) GTEST_SKIP() << "the device has no atomics";
  Start(/*with_keys=*/false, LockMode::kRpcLoopback);
  FindMemory(Session::kWithoutKey);
  for (const ibv_wr_opcode opcode : {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    const Tried tried = Try(Session::kWithoutKey, opcode, grant_.lock_address, grant_.lock_rkey);
    EXPECT_FALSE(tried.done || tried.changed);
  }
  RawPeer peer(this);
  ASSERT_TRUE(Connect(peer, Session::kWithoutKey));
  EXPECT_TRUE(peer.ReadAt(grant_.lock_address, grant_.lock_rkey).has_value());
}

// What a SEND invalidates is a right, too: others would lose the region.
TEST_F(RightsTest, NobodyInvalidatesTheServersKeys) {
  Start(/*with_keys=*/false);
  for (const Registered& it : FindMemory(Session::kWithoutKey)) {
    RawPeer hostile(this);
    ASSERT_TRUE(Connect(hostile, Session::kWithoutKey));
    hostile.SendAndInvalidate(it.rkey);
    RawPeer peer(this);
    ASSERT_TRUE(Connect(peer, Session::kWithoutKey));
    EXPECT_EQ(peer.Put("key", "value"), ReplyStatus::kOk);
    EXPECT_EQ(peer.Get("key"), "value");
    EXPECT_TRUE(peer.ReadAt(grant_.region_address, grant_.region_rkey).has_value());
    EXPECT_TRUE(peer.ReadAt(grant_.lock_address, grant_.lock_rkey).has_value());
  }
}

}  // namespace
}  // namespace gannet
