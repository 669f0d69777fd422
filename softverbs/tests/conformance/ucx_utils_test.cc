// ucx-utils: UCX finds the device, and its own benchmark runs on its two transports for verbs.

#include "softverbs/tests/conformance/row.h"

namespace conformance {
namespace {

constexpr const char* kIterations = "200";
constexpr const char* kFinal = "\nFinal:\\s+[0-9]+\\s+[0-9.]+";

Row Perftest(std::string name, const std::string& environment, const std::string& options) {
  Row row{.name = std::move(name), .kind = Server::kTcp};
  row.server = "env " + environment + " ucx_perftest -p {p}";
  row.client = row.server + " 127.0.0.1 -n " + kIterations + " " + options;
  row.client_says = {kFinal};
  return row;
}

// One transport, without UCX's choice between them.
Row Transport(std::string name, const std::string& transport, const std::string& test) {
  return Perftest(std::move(name), "UCX_WARN_UNUSED_ENV_VARS=n",
                  "-d softverbs0:1 -x " + transport + " -t " + test);
}

// The whole of UCX. rc_v is rc_verbs with the datagrams by which it connects.
Row Protocol(std::string name, const std::string& transports, const std::string& test) {
  const std::string environment = "UCX_NET_DEVICES=softverbs0:1 UCX_TLS=" + transports;
  Row row = Perftest(std::move(name), environment, "-t " + test);
  row.server += " -t " + test + " -n " + kIterations;
  return row;
}

std::vector<Row> Rows() {
  return {
      {.name = "Info",
       .client = "ucx_info -d",
       .client_says = {"Transport: rc_verbs[^]*Device: softverbs0:1[^]*Transport: ud_verbs"}},
      Transport("RcMessages", "rc_verbs", "am_lat"),
      Transport("RcPuts", "rc_verbs", "put_bw"),
      Transport("RcGets", "rc_verbs", "get -D zcopy -s 256"),
      Transport("UdMessages", "ud_verbs", "am_lat"),
      Protocol("TagsOverRc", "rc_v", "tag_lat"),
      Protocol("StreamsOverRc", "rc_v", "stream_lat"),
      Protocol("TagsOverUd", "ud_verbs", "tag_lat"),
  };
}

INSTANTIATE_TEST_SUITE_P(UcxUtils, RowTest, ::testing::ValuesIn(Rows()), RowName);

}  // namespace
}  // namespace conformance
