#ifndef GANNET_SERVER_GROUP_MEMBERS_BACKUP_LINK_H_
#define GANNET_SERVER_GROUP_MEMBERS_BACKUP_LINK_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/auth/auth_file.h"
#include "common/auth/auth_key.h"
#include "common/base/boot_time.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/protocol/connect.h"
#include "common/protocol/group_member.h"
#include "common/protocol/replica.h"
#include "common/rdma/completion.h"
#include "common/rdma/connector.h"
#include "common/rdma/device.h"
#include "common/rdma/memory.h"
#include "server/group/members/control_messages.h"
#include "server/group/members/link_work.h"
#include "server/group/replica/group_times.h"
#include "server/log/stream/ring_reader.h"

namespace gannet {

// Returns the first key for the servers of a group, or nullopt. Reads the file again if it was
// changed, so that each link shows the key of today. nullptr: there is none.
std::optional<AuthKey> ReplicaKeyOf(AuthFile* file);

// The end of a link to a primary, at who follows its stream: a backup, or for another group a
// receiver of partitions (move/giver_source.h). It has a control connection for messages, and a
// stream connection by which the primary WRITEs records into the ring. The ring is in a protection
// domain of its own, so the primary can reach nothing else.
//
//   connecting --both are accepted--> open --BeginFence--> fencing --flushed--> fenced
//
// While it is open:
//
//   SayHello; Take: a welcome; Accept; Take: beacons; Answer each
//
// 1. Once it is fenced, nobody can write into the ring any more. The ring keeps what it has.
// 2. Each link has new memory. So what is late on an old link destroys nothing.
//
// Never blocks. Owner thread only.
class BackupLink {
 public:
  struct Options {
    std::vector<Device> devices;  // of this server. The link goes through the one that reaches `to`
    SocketAddress to;
    std::string endpoint;        // `to` as somebody wrote it
    std::optional<AuthKey> key;  // that proves who this is; nullopt: none
    uint64_t token = 0;          // the same in both connections, and in no other
    uint64_t ring_bytes = 0;
    WallClock wall;     // by which its requests must be fresh
    BootTime deadline;  // until it is open
  };
  // Begins to connect. ResourceExhausted: no memory for the ring. Unavailable: cannot reach it.
  // What a device refuses is told later, in status().
  static absl::StatusOr<std::unique_ptr<BackupLink>> Start(const Options& options);
  // REQUIRES: fenced(), or the process ends.
  ~BackupLink() = default;

  void Poll(BootTime now);
  // Whether both connections are accepted, so that messages may be sent.
  bool open() const { return Both(Connection::State::kConnected); }
  // Why it cannot be used any more. OK: nothing is known against it.
  const absl::Status& status() const { return status_; }
  // The primary's text, if that refused a connection.
  const std::optional<Reject>& refused() const { return refused_; }

  // Returns the text of refused(), or that of status().
  std::string why() const;

  struct ToldBeacon {
    Beacon beacon;
    bool last;  // of this primary: it has stopped for a hand-over
  };
  struct Refused {
    std::optional<std::string> why;  // nullopt: that cannot be decoded
  };
  // Nothing of this kind may come now, or it cannot be decoded.
  struct OutOfPlace {
    std::optional<ReplicaKind> kind;
  };
  using Message = std::variant<ReplicaWelcome, ToldBeacon, MoveEnded, Refused, OutOfPlace>;
  // Returns the next message from the primary. A welcome comes behind the hello only, and beacons
  // and the end of partitions once a welcome was accepted. What is of another epoch than that says
  // nothing.
  std::optional<Message> Take();

  // Fills in the ring and who this is, and sends it. REQUIRES: open(), and it was not said.
  template <class Hello>
  void SayHello(Hello hello, uint64_t incarnation) {
    GANNET_CHECK(open() && !said_hello(), "no hello may be said now");
    hello.incarnation = incarnation;
    hello.ring_address = reinterpret_cast<uint64_t>(ring().data());
    hello.ring_bytes = ring().size();
    hello.ring_rkey = ring_rkey();
    said_ = Said::kHello;
    Send(hello);
  }
  bool said_hello() const { return said_ != Said::kNothing; }
  // Follows the stream of the welcome that came. FailedPrecondition: this process does not know its
  // version.
  absl::Status Accept(const ReplicaWelcome& welcome);
  bool welcomed() const { return said_ == Said::kWelcome; }
  // REQUIRES: welcomed().
  const ReplicaWelcome& welcome() const {
    GANNET_CHECK(welcomed(), "no primary has welcomed it");
    return welcome_;
  }
  // Says how far the stream was applied, and up to where its ring may be written again.
  void Answer(const Beacon& beacon, uint64_t applied, uint64_t consumed);
  template <class T>
  void Send(const T& message) {
    SendBytes(std::as_bytes(std::span(&message, 1)));
  }

  // To whom it goes, and through which device. REQUIRES: open().
  std::pair<SocketAddress, Device> way() const {
    GANNET_CHECK(device_ != nullptr, "the link has no device yet");
    return {options_.to, *device_};
  }
  std::span<std::byte> ring() const { return ring_->bytes(); }
  uint32_t ring_rkey() const { return ring_mr_->rkey; }

  // Moves both queue pairs to the error state. Poll flushes them.
  void BeginFence();
  bool fenced() const { return Both(Connection::State::kDrained); }

  // To sleep: Arm, Poll once more, wait until one of fds() is readable, call Woken.
  absl::Status Arm() { return cq_ == nullptr ? absl::OkStatus() : cq_->Arm(); }
  void Woken() {
    if (cq_ != nullptr) cq_->TakeEvent();
  }
  void AddFds(std::vector<int>* fds) const {
    fds->insert(fds->end(), {connectors_[0]->fd(), connectors_[1]->fd()});
    if (cq_ != nullptr) fds->push_back(cq_->fd());
  }

 private:
  static constexpr uint32_t kConnections = 2;
  enum class Said : uint8_t { kNothing, kHello, kWelcome };

  explicit BackupLink(const Options& options) : options_(options) {}
  void PollConnector(LinkConnection which, BootTime now);
  absl::Status Configure(LinkConnection which);
  void OnCompletion(const ibv_wc& completion);
  void Fail(absl::Status why);
  Message Decode(std::span<const std::byte> message) const;
  void SendBytes(std::span<const std::byte> message);
  Connection* control() const { return connectors_[0]->connection(); }
  bool Both(Connection::State state) const {
    return std::ranges::all_of(
        connectors_, [state](const auto& it) { return it->connection()->state() == state; });
  }
  bool fencing() const { return control()->closing(); }

  const Options options_;
  const Device* device_ = nullptr;  // of options_. nullptr: it is not known yet
  Handle<ibv_pd> pd_;
  std::unique_ptr<CompletionQueue> cq_;  // nullptr: the same
  std::optional<SharedMemory> ring_;
  Handle<ibv_mr> ring_mr_;
  std::unique_ptr<ControlMessages> messages_;
  std::array<std::unique_ptr<Connector>, kConnections> connectors_;
  std::array<ConnectRequest, kConnections> requests_{};
  Said said_ = Said::kNothing;
  ReplicaWelcome welcome_{};
  absl::Status status_;
  std::optional<Reject> refused_;
  std::deque<std::vector<std::byte>> received_;
};

// Where the stream of a welcome begins.
inline RingReader::Begin BeginOf(const ReplicaWelcome& welcome) {
  return {.stream_id = welcome.stream_id, .lsn = welcome.first_lsn, .position = welcome.position};
}
// The times of its group.
inline GroupTimes TimesOf(const ReplicaWelcome& welcome) {
  return {.lease_ns = int64_t{welcome.lease_ms} * kNsPerMs};
}

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_BACKUP_LINK_H_
