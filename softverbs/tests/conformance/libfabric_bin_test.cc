// libfabric-bin: its provider for verbs.

#include "softverbs/tests/conformance/row.h"

namespace conformance {
namespace {

Row PingPong(std::string name, const std::string& options) {
  const std::string command = "fi_pingpong -I 50 -S 1024 -p verbs " + options;
  Row row{.name = std::move(name), .kind = Server::kTcp};
  row.server = command + " -B {p}";
  row.client = command + " -P {p} 127.0.0.1";
  row.server_says = row.client_says = {"\n1k\\s+50\\s+=50\\s"};
  if (options.find("msg") != std::string::npos) row.one_host = kLibfabricListensInside;
  return row;
}

std::vector<Row> Rows() {
  return {
      {.name = "Info",
       .client = "fi_info -p verbs",
       .client_says = {"domain: softverbs0\n[^]*domain: softverbs0-dgram"}},
      PingPong("Messages", "-e msg"),
      PingPong("MessagesChecked", "-e msg -c"),
      PingPong("Datagrams", "-e dgram"),
  };
}

INSTANTIATE_TEST_SUITE_P(LibfabricBin, RowTest, ::testing::ValuesIn(Rows()), RowName);

}  // namespace
}  // namespace conformance
