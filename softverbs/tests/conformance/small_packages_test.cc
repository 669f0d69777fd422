// Packages with few programs: qperf, fio, dapl2-utils, infiniband-diags, python3-pyverbs.

#include <cstdlib>
#include <string>
#include <vector>

#include "softverbs/tests/conformance/row.h"

namespace conformance {
namespace {

// Measures for at least a second, and then tells the server to end.
Row Qperf(std::string name, const std::string& options) {
  Row row{.name = std::move(name), .kind = Server::kTcp};
  row.server = "qperf -lp {p}";
  row.client = "qperf -lp {p} 127.0.0.1 -t 1 " + options + " quit";
  row.client_says = {"(latency|bw|msg_rate)\\s+=\\s+[0-9.]+"};
  return row;
}

// Without -cm it connects by LIDs.
Row QperfByLid(std::string name, const std::string& options) {
  Row row = Qperf(std::move(name), options);
  row.server = "env SOFTVERBS_LINK_LAYER=infiniband " + row.server;
  row.client = "env SOFTVERBS_LINK_LAYER=infiniband " + row.client;
  return row;
}

// The side that writes is the client, whatever the verb.
Row Fio(std::string name, const std::string& verb) {
  const std::string both =
      "fio --name=row --ioengine=rdma --hostname=127.0.0.1 --port={p} --bs=4k --size=400k "
      "--iodepth=4 --rw=";
  Row row{.name = std::move(name), .kind = Server::kRdmaCm};
  row.server = both + "read";
  row.client = both + "write --verb=" + verb;
  row.server_says = row.client_says = {"row: \\(groupid=0, jobs=1\\): err= 0"};
  return row;
}

std::vector<Row> Rows() {
  // DAPL takes its address from an interface (dat.conf).
  const std::string dtest =
      std::string("env DAT_OVERRIDE=" CONFORMANCE_FOLDER "/dat.conf dtest -P ") +
      (getenv("TWO_HOSTS_B_NET") == nullptr ? "softverbs" : "softverbs_veth") + " -b 4096";
  return {
      Qperf("QperfRc", "-cm 1 rc_lat"),
      QperfByLid("QperfRcByLid", "rc_lat"),
      QperfByLid("QperfUdByLid", "ud_lat"),
      Qperf("QperfReads", "-cm 1 rc_rdma_read_lat"),
      Qperf("QperfAtomics", "-cm 1 ver_rc_compare_swap"),
      Fio("FioWrites", "write"),
      Fio("FioReads", "read"),
      // Its server waits for a client over TCP, at a port that can not be chosen, before it
      // listens.
      {.name = "Dtest",
       .kind = Server::kTcp,
       .server = dtest,
       .client = dtest + " -h 127.0.0.1",
       .own_port = 15828,
       .server_says = {"DAPL Test Complete. PASSED"},
       .client_says = {"DAPL Test Complete. PASSED"}},
      // These scan /sys/class/infiniband: by libibumad, and as a shell script.
      {.name = "Ibstat",
       .client = "ibstat",
       .client_says = {"CA 'softverbs0'[^]*Number of ports: 1[^]*State: Active[^]*Physical state: "
                       "LinkUp[^]*Rate: 100[^]*Link layer: Ethernet"}},
      {.name = "IbstatOfInfiniBand",
       .client = "env SOFTVERBS_LINK_LAYER=infiniband ibstat softverbs0 1",
       .client_says = {"Base lid: [1-9][^]*Link layer: InfiniBand"}},
      {.name = "Ibstatus",
       .client = "ibstatus",
       .client_says = {"device 'softverbs0' port 1 status:[^]*state:\\s+4: ACTIVE[^]*rate:\\s+100 "
                       "Gb/sec[^]*link_layer:\\s+Ethernet"}},
      {.name = "Pyverbs",
       .client = "/usr/bin/python3 " CONFORMANCE_FOLDER "/pyverbs_ping.py",
       .client_says = {"sent and read 64 bytes on softverbs0"}},
      // They need the device's network interface in sysfs.
      {.name = "PyverbsRdmacm",
       .client = "/usr/bin/python3 " CONFORMANCE_FOLDER "/pyverbs_rdmacm.py",
       .client_says = {"\nRan 10 tests [^]*\nOK\n"},
       .one_host = kMulticastStays},
  };
}

INSTANTIATE_TEST_SUITE_P(SmallPackages, RowTest, ::testing::ValuesIn(Rows()), RowName);

}  // namespace
}  // namespace conformance
