// rdmacm-utils: the example programs of librdmacm.

#include "softverbs/tests/conformance/row.h"

namespace conformance {
namespace {

constexpr const char* kRpingQuirk =
    "rping destroys its event channel under its own thread, which may exit non-zero";
constexpr const char* kSucceeded = "return status 0";

Row Rping(std::string name, const std::string& address, const std::string& options, Says server,
          Says client) {
  Row row{.name = std::move(name), .kind = Server::kRdmaCm, .quirk = kRpingQuirk};
  row.server = "rping -s -p {p} -a " + address + " " + options;
  row.client = "rping -c -p {p} -a " + address + " " + options;
  row.server_says = std::move(server);
  row.client_says = std::move(client);
  return row;
}

// With -v, both print every message.
Row VerboseRping(std::string name, const std::string& options, int count) {
  return Rping(std::move(name), "127.0.0.1", options + " -v -C " + std::to_string(count),
               {"server ping data: rdma-ping-[0-9]+:", count},
               {"ping data: rdma-ping-[0-9]+:", count});
}

// Programs that take their server's address with -s, and bind with -b.
Row Connecting(std::string name, const std::string& program, const std::string& options) {
  Row row{.name = std::move(name), .kind = Server::kRdmaCm};
  row.server = program + " -b 127.0.0.1 -p {p} " + options;
  row.client = program + " -s 127.0.0.1 -p {p} " + options;
  row.server_says = row.client_says = {kSucceeded};
  return row;
}

// It listens on the fixed port 7174, and has no option for another.
Row Udaddy(std::string name, const std::string& options) {
  Row row{.name = std::move(name), .kind = Server::kRdmaCm, .own_port = 7174};
  row.server = "udaddy -b 127.0.0.1 " + options;
  row.client = "udaddy -s 127.0.0.1 " + options;
  row.server_says = row.client_says = {kSucceeded};
  return row;
}

// A member of a group, and another that sends.
Row Mckey(std::string name, const std::string& sender_options) {
  Row row{.name = std::move(name), .kind = Server::kGroup, .one_host = kMulticastStays};
  row.server = "mckey -m {g} " + (sender_options == "-o" ? "" : sender_options);
  row.client = "mckey -s -m {g} " + sender_options;
  row.server_says = row.client_says = {kSucceeded};
  return row;
}

std::vector<Row> Rows() {
  Row udaddy_ipv6 = Udaddy("UdaddyIpv6", "");
  udaddy_ipv6.server = "udaddy -b ::1";
  udaddy_ipv6.client = "udaddy -s ::1";
  Row persistent = VerboseRping("RpingPersistent", "", 10);
  persistent.kind = Server::kStays;
  persistent.server = "rping -s -P -a 127.0.0.1 -p {p} -v";
  Row wildcard = VerboseRping("RpingWildcard", "", 3);
  wildcard.server = "rping -s -p {p} -v -C 3";
  Row timing = Connecting("CmTime", "cmtime", "-c 50");
  timing.kind = Server::kStays;
  timing.client_says = {"disconnect"};
  return {
      Rping("Rping", "127.0.0.1", "-C 3", {""}, {""}),
      Rping("RpingIpv6", "::1", "-v -C 3", {"rdma-ping-2"}, {"rdma-ping-2"}),
      wildcard,
      VerboseRping("RpingManyVerified", "-V", 1000),
      VerboseRping("RpingOwnQueuePair", "-q -V", 10),
      Rping("RpingLarge", "127.0.0.1", "-S 65535 -V -C 10", {""}, {""}),
      VerboseRping("RpingLargeOwnQueuePair", "-q -S 65535 -V", 10),
      persistent,

      Connecting("Ucmatose", "ucmatose", ""),
      Connecting("UcmatoseStorm", "ucmatose", "-c 500 -C 0"),
      Connecting("UcmatoseManyMessages", "ucmatose", "-c 100 -C 20"),
      Connecting("UcmatoseLarge", "ucmatose", "-c 10 -S 65536"),
      Connecting("UcmatoseMigrate", "ucmatose", "-c 50 -m"),
      timing,

      Udaddy("Udaddy", ""),
      Udaddy("UdaddyMany", "-c 50 -C 20"),
      Udaddy("UdaddyWholeMtu", "-S 4096"),
      udaddy_ipv6,
      Mckey("Mckey", ""),
      Mckey("MckeyMany", "-c 10 -C 50 -S 4096"),
      Mckey("MckeySendOnly", "-o"),

      {.name = "RdmaClientServer",
       .kind = Server::kRdmaCm,
       .server = "rdma_server -s 127.0.0.1 -p {p}",
       .client = "rdma_client -s 127.0.0.1 -p {p}",
       .server_says = {"rdma_server: end 0"},
       .client_says = {"rdma_client: end 0"}},
      {.name = "RdmaXclientXserver",
       .kind = Server::kRdmaCm,
       .server = "rdma_xserver -p {p}",
       .client = "rdma_xclient -s 127.0.0.1 -p {p}",
       .server_says = {"rdma_xserver: end 0"},
       .client_says = {"rdma_xclient: end 0"}},
  };
}

INSTANTIATE_TEST_SUITE_P(RdmacmUtils, RowTest, ::testing::ValuesIn(Rows()), RowName);

}  // namespace
}  // namespace conformance
