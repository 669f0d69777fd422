// Checks the example with keys in docs/protocol-handshake.md against what the code produces.

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/common/auth/example_handshake.h"
#include "tests/common/protocol/golden_bytes.h"

namespace gannet {
namespace {

TEST(AuthDocumentTest, ShowsTheBytesThatTheCodeProduces) {
  std::ifstream file(GANNET_PROTOCOL_DOCUMENT);
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(document.empty()) << GANNET_PROTOCOL_DOCUMENT;
  const auto shows = [&document](const std::string& hex) {
    return document.find("```\n" + hex + "\n```") != std::string::npos;
  };
  const Grant grant = ExampleGrant();
  const std::string server = Hex(ExampleServer().NetworkBytes());
  const std::string mac = Hex(BytesOf(grant).subspan(offsetof(Grant, mac), sizeof(grant.mac)));
  EXPECT_TRUE(shows(HexOf(ExampleRequest()))) << HexOf(ExampleRequest());
  EXPECT_TRUE(shows(server)) << server;
  EXPECT_TRUE(shows(mac)) << mac;
}

}  // namespace
}  // namespace gannet
