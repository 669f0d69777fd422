// softverbs refuses what it does not support as a device does that lacks it: the programs say so
// and end.

#include "softverbs/tests/conformance/row.h"

namespace conformance {
namespace {

Row Refused(std::string name, std::string command, std::string says) {
  return {.name = std::move(name),
          .client = std::move(command),
          .client_says = {std::move(says)},
          .refused = true};
}

// A type of queue pair that perftest knows. Both ends report it, before they meet or after.
Row RefusedType(std::string name, const std::string& type) {
  Row row = Pair(std::move(name), Server::kTcp, "ib_send_lat -F -c " + type,
                 {"Couldn't create IB resources"});
  row.refused = true;
  return row;
}

// A queue pair that is to be connected without a GID. The server is the first that tries.
Row WithoutGid() {
  Row row = Pair("PathWithoutGid", Server::kTcp, "ibv_rc_pingpong", {"Failed to modify QP to RTR"});
  row.client_says = {};
  row.refused = true;
  return row;
}

std::vector<Row> Rows() {
  return {
      RefusedType("XrcQueuePair", "XRC"),
      RefusedType("DynamicallyConnectedQueuePair", "DC"),
      RefusedType("ScalableReliableDatagrams", "SRD"),
      WithoutGid(),
      Refused("XrcSharedReceiveQueue", "ibv_xsrq_pingpong -g 0", "Couldn't Open the XRC Domain 95"),
      Refused("Ipoib", "udaddy -P ipoib -b 127.0.0.1", "listen request failed: Operation not"),
      Refused("XrcServer", "rdma_xserver -c x -p {p}", "rdma_create_ep: Operation not supported"),
      Refused("OnDemandPaging", "ibv_rc_pingpong -g 0 -o", "(?:)"),
      Refused("DeviceMemory", "ibv_rc_pingpong -g 0 -j", "(?:)"),
      // rsockets live in librdmacm, on its private structures.
      Refused("RsocketStream", "rstream -b 127.0.0.1", "rsocket failed: Function not implemented"),
      Refused("RsocketCopy", "rcopy /etc/hostname 127.0.0.1:/nowhere",
              "rsocket failed: Function not implemented"),
      Refused("RsocketMemory", "riostream -b 127.0.0.1",
              "rsocket failed: Function not implemented"),
      Refused("RsocketDatagrams", "udpong -b 127.0.0.1",
              "rsocket failed: Function not implemented"),
  };
}

INSTANTIATE_TEST_SUITE_P(Refused, RowTest, ::testing::ValuesIn(Rows()), RowName);

}  // namespace
}  // namespace conformance
