#ifndef GANNET_COMMON_RDMA_ALTERNATE_PATHS_H_
#define GANNET_COMMON_RDMA_ALTERNATE_PATHS_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "common/rdma/port.h"

namespace gannet {

// Returns whether the device moves connections to an alternate path (APM): it says so, and has
// several ports of InfiniBand. No RoCE NIC does.
bool HasAlternatePaths(ibv_context* verbs);

// A way of a connection: from a port of this device to one of the peer's.
struct NetworkPath {
  ibv_ah_attr to{};  // and from which port
  uint16_t pkey_index = 0;
  uint8_t timeout = 0;
  ibv_mtu mtu{};  // of its packets
};

// Returns the way that the queue pair goes. Returns nullopt if it has none.
std::optional<NetworkPath> PathOf(ibv_qp* qp);
// Returns the other way of two by different ports, whose packets are as long. Returns nullopt if
// `ways`, which may have some twice, are not these two.
std::optional<NetworkPath> OtherOfTwo(std::span<const NetworkPath> ways, const NetworkPath& own);
// Returns the way from a port of the device to itself.
NetworkPath PathToItself(ibv_context* verbs, uint8_t port, const NetworkPath& like);

// The two ways of one connection on a device with alternate paths. The device takes the other one
// by itself when a port is down, or answers do not come; the peer's follows. No work request fails,
// and neither side posts any again. Both ends load the other way with Look.
//
//   not loaded --Look, the other port is up--> loaded --the device moved, or GoHome--> not loaded
//
// Owner thread only. Each call asks the device: microseconds.
class AlternatePath {
 public:
  // `home` is the way that the queue pair goes now. It outlives this.
  AlternatePath(ibv_qp* qp, const NetworkPath& home, const NetworkPath& other)
      : qp_(qp), home_(home), other_(other) {}

  // Loads the other way, if it is not, and its port is up. Returns whether the connection has moved
  // since the last call.
  bool Look();
  // It is loaded, and the peer has not been heard since.
  bool waits() const { return state_ == State::kLoaded; }
  // The device moves the connection when it must.
  bool armed() const { return state_ == State::kArmed; }
  // Nothing is to be done before it moves.
  bool settled() const { return armed() && at_home_; }
  uint8_t port() const { return (at_home_ ? home_ : other_).to.port_num; }

 private:
  enum class State : uint8_t { kNotLoaded, kLoaded, kArmed };

  bool AskWhetherMoved();
  void GoHomeIfItWasDown();
  bool Modify(const ibv_qp_attr& attributes, int mask);

  ibv_qp* const qp_;
  const NetworkPath home_;
  const NetworkPath other_;
  State state_ = State::kNotLoaded;
  bool at_home_ = true;
  bool home_was_down_ = false;  // since it left
};

// The alternate paths of an owner's connections. One may go the way of another one of the same two
// processes and devices by another port at both ends. So nobody asks the other end for addresses.
//
// Who the peer's device is, nobody sees here. So a session's connections have alternate paths if
// they go just two ways by this device. If the peer's ends are of two devices, then these do not go
// two ways each, so the peer loads none, and none is armed.
//
// Owner thread only.
class AlternatePaths {
 public:
  struct Connection {
    uint32_t id = 0;       // never used again
    uint64_t session = 0;  // siblings have the same
    ibv_qp* qp = nullptr;
  };
  struct Moved {
    uint32_t id = 0;
    uint8_t port = 0;  // by which it goes now
  };

  // To ask a device takes microseconds, and there may be thousands of connections.
  static constexpr size_t kAsksMax = 128;

  // Looks at connections: at most kAsksMax of those that are new, or not settled. `changed`: a
  // device moved some, or a port changed, so look at all, as soon as that allows. `open` are all
  // connections of devices with alternate paths that there are. Returns those that have moved.
  std::vector<Moved> Look(std::vector<Connection> open, bool changed);
  // Returns whether the connection had an armed path, when it was last asked.
  bool armed(uint32_t id) const {
    const auto way = ways_.find(id);
    return way != ways_.end() && way->second.alternate && way->second.alternate->armed();
  }

 private:
  struct Way {
    uint64_t seen = 0;  // by which Look
    bool due = true;    // to be asked
    std::optional<NetworkPath> home;
    std::optional<AlternatePath> alternate;
  };

  // REQUIRES: they are all connections of one session.
  void Pair(std::span<const Connection> connections);
  std::vector<Moved> Ask();

  std::map<uint32_t, Way> ways_;  // by id
  uint64_t looks_ = 0;
  uint32_t next_ = 0;  // which is asked first
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_ALTERNATE_PATHS_H_
