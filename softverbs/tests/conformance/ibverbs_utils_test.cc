// ibverbs-utils: the example programs of libibverbs.

#include "softverbs/tests/conformance/row.h"

namespace conformance {
namespace {

Row PingPong(std::string name, const std::string& command, int iterations) {
  const std::string count = std::to_string(iterations);
  return Pair(std::move(name), Server::kTcp, command + " -g 0 -n " + count,
              {"\n" + count + " iters in [0-9.]+ seconds"});
}

// Without a GID, on an InfiniBand port.
Row ByLid(std::string name, const std::string& command) {
  return Pair(std::move(name), Server::kTcp,
              "env SOFTVERBS_LINK_LAYER=infiniband " + command + " -n 200",
              {"\n200 iters in [0-9.]+ seconds"});
}

std::vector<Row> Rows() {
  return {
      {.name = "Devices", .client = "ibv_devices", .client_says = {"softverbs0"}},
      {.name = "DevInfo",
       .client = "ibv_devinfo -v",
       .client_says = {"hca_id:\\s+softverbs0[^]*PORT_ACTIVE"}},

      {.name = "DevInfoOfInfiniBand",
       .client = "env SOFTVERBS_LINK_LAYER=infiniband ibv_devinfo",
       .client_says = {"port_lid:\\s+1\n[^]*link_layer:\\s+InfiniBand"}},
      ByLid("RcByLid", "ibv_rc_pingpong -c"),
      ByLid("UcByLid", "ibv_uc_pingpong"),
      ByLid("UdByLid", "ibv_ud_pingpong"),
      ByLid("SrqByLid", "ibv_srq_pingpong"),

      PingPong("Rc", "ibv_rc_pingpong", 200),
      PingPong("RcEvents", "ibv_rc_pingpong -e", 200),
      PingPong("RcTimestamps", "ibv_rc_pingpong -t", 200),
      // Never -t with -e: the tool treats an event as an error if it has already polled the
      // completion.
      PingPong("RcNewSend", "ibv_rc_pingpong -N", 200),
      PingPong("RcNewSendEvents", "ibv_rc_pingpong -N -e", 200),
      PingPong("RcChecked", "ibv_rc_pingpong -c", 200),
      PingPong("RcCheckedEvents", "ibv_rc_pingpong -c -e", 200),
      PingPong("RcNewSendCheckedEvents", "ibv_rc_pingpong -N -c -e -s 100000", 50),

      PingPong("Uc", "ibv_uc_pingpong", 200),
      PingPong("UcEvents", "ibv_uc_pingpong -e", 200),
      PingPong("UcChecked", "ibv_uc_pingpong -c", 200),
      PingPong("UcCheckedEvents", "ibv_uc_pingpong -c -e", 200),

      PingPong("Ud", "ibv_ud_pingpong", 200),
      PingPong("UdEvents", "ibv_ud_pingpong -e", 200),
      PingPong("UdChecked", "ibv_ud_pingpong -c", 200),
      PingPong("UdCheckedEvents", "ibv_ud_pingpong -c -e", 200),

      PingPong("Srq", "ibv_srq_pingpong", 50),
      PingPong("SrqEvents", "ibv_srq_pingpong -e", 50),
      PingPong("SrqChecked", "ibv_srq_pingpong -c", 50),
      PingPong("SrqCheckedEvents", "ibv_srq_pingpong -c -e", 50),
  };
}

INSTANTIATE_TEST_SUITE_P(IbverbsUtils, RowTest, ::testing::ValuesIn(Rows()), RowName);

}  // namespace
}  // namespace conformance
