#include "common/protocol/announce.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/hex.h"

namespace gannet {
namespace {

ServerAnnouncement Example() {
  return {.cluster = "c",
          .group = "g1",
          .name = "n1",
          .address = "10.0.0.1:7471",
          .epoch = 3,
          .sequence = 0x0102030405060708,
          .primary = true};
}

std::vector<std::byte> BytesOf(const ServerAnnouncement& it) {
  const AnnounceBytes bytes = EncodeAnnouncement(it);
  const auto all = std::as_bytes(std::span(&bytes, 1));
  return {all.begin(), all.end()};
}

std::string HexOf(std::span<const std::byte> bytes) { return test_support::Hex(bytes); }

TEST(AnnounceTest, HasTheseBytes) {
  const std::vector<std::byte> bytes = BytesOf(Example());
  ASSERT_EQ(bytes.size(), 328u);
  const std::span all(bytes);
  EXPECT_EQ(HexOf(all.first(32)),
            "474e544101004801"
            "0300000000000000"
            "0807060504030201"
            "0100000000000000");
  EXPECT_EQ(HexOf(all.subspan(32, 64)), "63" + std::string(126, '0'));
  EXPECT_EQ(HexOf(all.subspan(96, 64)), "6731" + std::string(124, '0'));
  EXPECT_EQ(HexOf(all.subspan(160, 64)), "6e31" + std::string(124, '0'));
  EXPECT_EQ(HexOf(all.subspan(224)), "31302e302e302e313a37343731" + std::string(182, '0'));
}

TEST(AnnounceTest, DecodesWhatItEncoded) {
  const std::string most(kAnnounceNameBytes - 1, 'x');
  for (const ServerAnnouncement& it :
       {Example(), ServerAnnouncement{.address = "[fd00::1]:1", .sequence = 1},
        ServerAnnouncement{.cluster = most,
        .group = most,
        .name = most,
        .address = std::string(kAnnounceAddressBytes - 1, 'a'),
        .epoch = UINT64_MAX,
        .sequence = UINT64_MAX}}) {
    ASSERT_TRUE(CanAnnounce(it));
    const auto again = DecodeAnnouncement(BytesOf(it));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, it);
  }
}

TEST(AnnounceTest, ADatagramMayBeLonger) {
  std::vector<std::byte> bytes = BytesOf(Example());
  bytes.resize(bytes.size() + 100, std::byte{0xff});
  EXPECT_EQ(DecodeAnnouncement(bytes).value(), Example());
}

TEST(AnnounceTest, RefusesWhatIsNone) {
  const std::vector<std::byte> good = BytesOf(Example());
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeAnnouncement(std::span(good).first(bytes)).status()));
  }
  const std::function<void(AnnounceBytes&)> spoils[] = {
      [](AnnounceBytes& it) { it.magic ^= 1; },
      [](AnnounceBytes& it) { it.length -= 1; },
      [](AnnounceBytes& it) { it.sequence = 0; },
      [](AnnounceBytes& it) { it.primary = 2; },
      [](AnnounceBytes& it) { it.zero[6] = 1; },
      [](AnnounceBytes& it) { it.address[0] = 0; },
      [](AnnounceBytes& it) { std::memset(it.address, 0, sizeof(it.address)); },
      [](AnnounceBytes& it) { std::memset(it.name, 'n', sizeof(it.name)); },  // no end
      [](AnnounceBytes& it) { it.cluster[10] = 'x'; },                        // behind the end
      [](AnnounceBytes& it) { it.group[1] = '\n'; },
      [](AnnounceBytes& it) { it.address[2] = '@'; },
      [](AnnounceBytes& it) { it.address[2] = ','; },
      [](AnnounceBytes& it) { it.name[0] = '\x1b'; },
  };
  for (const auto& spoil : spoils) {
    AnnounceBytes bytes = EncodeAnnouncement(Example());
    spoil(bytes);
    const absl::Status status = DecodeAnnouncement(std::as_bytes(std::span(&bytes, 1))).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << &spoil - spoils << ": " << status;
  }
}

TEST(AnnounceTest, AnotherVersionIsNamed) {
  AnnounceBytes bytes = EncodeAnnouncement(Example());
  bytes.version = 2;
  EXPECT_TRUE(
      absl::IsUnimplemented(DecodeAnnouncement(std::as_bytes(std::span(&bytes, 1))).status()));
}

TEST(AnnounceTest, NamesThatDoNotFitCannotBeAnnounced) {
  const std::function<void(ServerAnnouncement&)> spoils[] = {
      [](ServerAnnouncement& it) { it.name = std::string(kAnnounceNameBytes, 'n'); },
      [](ServerAnnouncement& it) { it.address = std::string(kAnnounceAddressBytes, 'a'); },
      [](ServerAnnouncement& it) { it.address.clear(); },
      [](ServerAnnouncement& it) { it.cluster = "a b"; },
  };
  for (const auto& spoil : spoils) {
    ServerAnnouncement it = Example();
    spoil(it);
    EXPECT_FALSE(CanAnnounce(it)) << &spoil - spoils;
  }
}

}  // namespace
}  // namespace gannet
