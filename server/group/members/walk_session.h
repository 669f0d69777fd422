#ifndef GANNET_SERVER_GROUP_MEMBERS_WALK_SESSION_H_
#define GANNET_SERVER_GROUP_MEMBERS_WALK_SESSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/auth/auth_file.h"
#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/lookup/index_view.h"
#include "common/rdma/address.h"
#include "common/rdma/device.h"
#include "common/rdma/handle.h"
#include "common/rdma/idler.h"
#include "common/rdma/memory.h"
#include "server/group/members/fetch_session.h"

namespace gannet {

// A FetchSession that goes on over another rail: the memory that it READs into, and the READs that
// are under way. Who READs notices nothing but the time that it takes.
//
// 1. A READ that was under way on a rail that is lost is posted again once nothing of that rail is
//    in flight any more.
// 2. It goes on only if the server's index is what it was. Otherwise the session is over: nobody
//    told the server of a reader meanwhile, so it may have freed what is to be READ.
//
// Owner thread only. As FetchSession, it waits until the device has flushed what is in flight.
class WalkSession {
 public:
  static constexpr uint32_t kReadsMax = FetchSession::kReadsMax;
  static constexpr int64_t kLostNsMax = 5 * kNsPerSecond;  // without any rail

  // An address of the server, and the own device that may reach it.
  struct Way {
    SocketAddress server;
    Device device;
  };
  struct Options {
    std::vector<Way> ways;     // tried in this order, and then again
    ibv_pd* pd = nullptr;      // of the only way's device; nullptr: it makes its own
    AuthFile* keys = nullptr;  // outlives the session; nullptr: no key
    WallClock wall;
    Idler* idle = nullptr;
  };
  // The errors are those of FetchSession::Begin, of the first way.
  static absl::StatusOr<std::unique_ptr<WalkSession>> Begin(Options options, BootTime now);
  WalkSession(const WalkSession&) = delete;
  WalkSession& operator=(const WalkSession&) = delete;

  // What is READ into. Makes it anew, with at least so many bytes. REQUIRES: no READ into the
  // former one is under way.
  enum class Memory : uint8_t { kItems, kValues };
  absl::Status Make(Memory which, uint64_t bytes);
  std::byte* data(Memory which) const { return At(which).data(); }
  uint64_t size(Memory which) const { return At(which).bytes.size(); }

  void Poll(BootTime now);
  bool ready() const { return session_ != nullptr && session_->ready() && status_.ok(); }
  // Why it is over, if it is.
  const absl::Status& status() const { return status_; }

  // As FetchSession has them.
  const Grant& grant() const { return session_->grant(); }
  const IndexView& view() const { return view_; }
  void WantIndex() { session_->WantIndex(); }
  void Acknowledge(uint64_t generation) { session_->Acknowledge(generation); }
  uint32_t room() const { return kReadsMax - in_flight_; }
  uint32_t in_flight() const { return in_flight_; }
  // READs into the memory at `at`.
  void AddRead(uint32_t tag, uint64_t offset, uint32_t bytes, Memory which, uint64_t at);
  void Post() { session_->Post(); }
  // Those that were done since it was ready last.
  const std::vector<uint32_t>& done() const { return done_; }

  void Arm();
  bool completed() const { return session_ != nullptr && session_->completed(); }
  std::array<int, 2> fds() const;
  BootTime deadline() const { return session_ == nullptr ? BootTime() : session_->deadline(); }

 private:
  static constexpr int64_t kConnectNs = kNsPerSecond / 2;  // if there are several ways

  struct Read {
    uint32_t tag = 0;
    uint64_t offset = 0;
    uint32_t bytes = 0;  // 0: the place is free
    Memory which{};
    uint64_t at = 0;
  };

  explicit WalkSession(Options options) : options_(std::move(options)) {}
  const RegisteredBuffer& At(Memory which) const { return memories_[static_cast<size_t>(which)]; }
  // Connects by the way whose turn it is. REQUIRES: there is no session.
  absl::Status Connect(BootTime now);
  void GoOn(BootTime now);
  // It is ready again.
  void PostAgain();
  void Hand(uint32_t place);

  const Options options_;
  absl::Status status_;
  size_t way_ = 0;
  IndexView view_;
  bool goes_on_ = false;  // it was ready, and is to be again
  std::optional<BootTime> lost_since_;
  std::array<Read, kReadsMax> reads_;
  uint32_t in_flight_ = 0;
  bool handed_ = false;  // what is done was to be seen
  std::vector<uint32_t> done_;

  Handle<ibv_pd> own_pd_;
  std::array<RegisteredBuffer, 2> memories_;
  std::unique_ptr<FetchSession> session_;  // destroyed before what it READs into
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_WALK_SESSION_H_
