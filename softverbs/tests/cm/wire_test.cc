#include "softverbs/cm/wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>

namespace softverbs::cm {
namespace {

Message Request() {
  Message message = MakeMessage(MessageKind::kRequest);
  message.source.family = message.destination.family = AF_INET6;
  message.source.port = message.destination.port = htons(7471);
  return message;
}

TEST(WireTest, GoldenHeader) {
  Message message = Request();
  message.qp_num = 0x112233;
  message.psn = 0x445566;
  const uint8_t golden[16] = {0x53, 0x56, 0x43, 0x4d, 2,    0,    1,    0,
                              0x33, 0x22, 0x11, 0,    0x66, 0x55, 0x44, 0};
  EXPECT_EQ(std::memcmp(&message, golden, sizeof(golden)), 0);
}

TEST(WireTest, AcceptsEveryKindOfOurOwn) {
  for (int kind = 1; kind <= 9; kind++) {
    Message message = Request();
    message.kind = static_cast<uint16_t>(kind);
    EXPECT_TRUE(Valid(message, sizeof(message))) << kind;
  }
}

TEST(WireTest, RefusesOtherSizes) {
  EXPECT_FALSE(Valid(Request(), 0));
  EXPECT_FALSE(Valid(Request(), sizeof(Message) - 1));
  EXPECT_FALSE(Valid(Request(), sizeof(Message) + 1));
}

TEST(WireTest, RefusesFieldsOutOfRange) {
  const auto refused = [](auto change) {
    Message message = Request();
    change(message);
    return !Valid(message, sizeof(message));
  };
  EXPECT_TRUE(refused([](Message& m) { m.magic++; }));
  EXPECT_TRUE(refused([](Message& m) { m.version = 3; }));
  EXPECT_TRUE(refused([](Message& m) { m.kind = 0; }));
  EXPECT_TRUE(refused([](Message& m) { m.kind = 10; }));
  EXPECT_TRUE(refused([](Message& m) { m.qp_num = 1 << 24; }));
  EXPECT_TRUE(refused([](Message& m) { m.psn = 1 << 24; }));
  EXPECT_TRUE(refused([](Message& m) { m.retry_count = 8; }));
  EXPECT_TRUE(refused([](Message& m) { m.rnr_retry_count = 8; }));
  EXPECT_TRUE(refused([](Message& m) { m.source.family = AF_INET; }));
  EXPECT_TRUE(refused([](Message& m) { m.source.port = 0; }));
  EXPECT_TRUE(refused([](Message& m) { m.destination.family = AF_UNIX; }));
}

}  // namespace
}  // namespace softverbs::cm
