#ifndef GANNET_TESTS_INTEGRATION_WIRE_TAP_H_
#define GANNET_TESTS_INTEGRATION_WIRE_TAP_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <tuple>

namespace gannet {

// How often one side used each verb.
struct VerbCounts {
  uint64_t reads = 0;
  uint64_t sends = 0;
  uint64_t cas = 0;

  friend bool operator==(const VerbCounts&, const VerbCounts&) = default;
};

// Counts the requests that leave this host through one network interface as RoCE v2 packets, by the
// opcode of their base transport header (IBTA 9.2). Counts each only once, however often it is sent
// again. Needs CAP_NET_RAW. One owner thread.
class WireTap {
 public:
  // Ends the test program if it cannot listen on the interface.
  explicit WireTap(const std::string& interface);
  ~WireTap();
  WireTap(const WireTap&) = delete;
  WireTap& operator=(const WireTap&) = delete;

  // The counts since the last call. Heartbeats of the store are counted separately.
  struct Counts {
    VerbCounts verbs;
    uint64_t heartbeats = 0;
  };
  Counts Take();

 private:
  void CountPacket(std::span<const std::byte> packet, Counts* counts);

  int fd_ = -1;
  std::set<std::tuple<uint32_t, uint32_t, uint8_t>> seen_;  // queue pair, packet number, opcode
};

}  // namespace gannet

#endif  // GANNET_TESTS_INTEGRATION_WIRE_TAP_H_
