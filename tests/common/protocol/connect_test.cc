#include "common/protocol/connect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "common/layout/superblock.h"
#include "common/protocol/limits.h"
#include "tests/common/protocol/golden_bytes.h"

namespace gannet {
namespace {

// Private data as it arrives, padded with zeroes to the transport's maximum.
template <class T>
std::vector<std::byte> Padded(const T& message, size_t size) {
  std::vector<std::byte> bytes(size);
  const auto all = std::as_bytes(std::span(&message, 1));
  std::copy_n(all.begin(), std::min(size, sizeof(message)), bytes.begin());
  return bytes;
}

ConnectRequest AConnectRequest() {
  ConnectRequest request = NewConnectRequest();
  request.qp_index = 3;
  request.key_id = 0x04050607;
  request.session_token = 0x1112131415161718;
  request.nonce = 0x2122232425262728;
  request.time_ms = 0x3132333435363738;
  for (uint8_t i = 0; i < sizeof(request.mac); ++i) request.mac[i] = 0xa0 + i;
  return request;
}

Grant AGrant() {
  Grant grant = NewGrant();
  grant.incarnation = 0x0102030405060708;
  grant.region_address = 0x00007f0000000000;
  grant.region_bytes = 1 << 20;
  grant.lock_address = 0x00007f1000000000;
  grant.region_rkey = 0x11121314;
  grant.lock_rkey = 0x21222324;
  grant.lock_words = 65536;
  grant.connection_id = 7;
  grant.session_token = 0x3132333435363738;
  grant.session_id = 9;
  grant.hash_seed = 0x4142434445464748;
  grant.index = {.generation = 1, .offset = 4096, .homes = 100, .stash_homes = 2};
  grant.message_bytes_max = kMessageBytesMax;
  grant.primary_lease_ms = 0x0258;
  grant.value_bytes_max = 1 << 20;
  grant.credits = kCreditsDefault;
  grant.features = 0x5152;
  grant.lock_mode = static_cast<uint8_t>(LockMode::kNicCas);
  grant.resumed = 1;
  grant.silence_ms = 0x5354;
  grant.time_ms = 0x6162636465666768;
  SetName(&grant, "cache-1.example:7471");
  for (uint8_t i = 0; i < sizeof(grant.mac); ++i) grant.mac[i] = 0xc0 + i;
  grant.history = 0x7172737475767778;
  return grant;
}

// Whoever changes these bytes changes the protocol, and must also raise its version and update
// docs/protocol.md.
TEST(ConnectTest, GoldenBytesOfTheRequest) {
  EXPECT_EQ(HexOf(AConnectRequest()),
            "47 4e 54 43 04 05 38 00 00 00 03 00 07 06 05 04\n"
            "18 17 16 15 14 13 12 11 28 27 26 25 24 23 22 21\n"
            "38 37 36 35 34 33 32 31 a0 a1 a2 a3 a4 a5 a6 a7\n"
            "a8 a9 aa ab ac ad ae af");
}

TEST(ConnectTest, GoldenBytesOfTheGrant) {
  EXPECT_EQ(HexOf(AGrant()),
            "47 4e 54 47 05 00 c0 00 08 07 06 05 04 03 02 01\n"
            "00 00 00 00 00 7f 00 00 00 00 10 00 00 00 00 00\n"
            "00 00 00 00 10 7f 00 00 14 13 12 11 24 23 22 21\n"
            "00 00 01 00 07 00 00 00 38 37 36 35 34 33 32 31\n"
            "09 00 00 00 03 00 00 00 48 47 46 45 44 43 42 41\n"
            "01 00 00 00 00 00 00 00 00 10 00 00 00 00 00 00\n"
            "64 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00\n"
            "00 10 58 02 00 00 10 00 20 00 52 51 01 01 54 53\n"
            "68 67 66 65 64 63 62 61 c0 c1 c2 c3 c4 c5 c6 c7\n"
            "c8 c9 ca cb cc cd ce cf 63 61 63 68 65 2d 31 2e\n"
            "65 78 61 6d 70 6c 65 3a 37 34 37 31 00 00 00 00\n"
            "00 00 00 00 00 00 00 00 78 77 76 75 74 73 72 71");
}

TEST(ConnectTest, GoldenBytesOfTheReject) {
  const Reject reject = NewReject(RejectCode::kVersion, "no\tway");
  const std::string hex = HexOf(reject);
  EXPECT_EQ(hex.substr(0, 3 * 32 - 1),
            "47 4e 54 52 05 00 94 00 02 00 00 00 6e 6f 3f 77\n"
            "61 79 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(hex.find_first_not_of("0 \n", 3 * 18), std::string::npos);
}

TEST(ConnectTest, DecodesWhatItEncoded) {
  const auto request = DecodeConnectRequest(Padded(AConnectRequest(), 56));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(HexOf(*request), HexOf(AConnectRequest()));
  const auto grant = DecodeGrant(Padded(AGrant(), 196));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(HexOf(*grant), HexOf(AGrant()));
  const auto reject = DecodeReject(Padded(NewReject(RejectCode::kShuttingDown, "bye"), 148));
  ASSERT_TRUE(reject.ok()) << reject.status();
  EXPECT_EQ(reject->code, static_cast<uint32_t>(RejectCode::kShuttingDown));
  EXPECT_EQ(RejectReason(*reject), "bye");
}

TEST(ConnectTest, AGrantHasANameOfAnyLengthUpToTheLongest) {
  Grant grant = AGrant();
  const std::string longest(kServerNameBytesMax, 'n');
  for (const std::string& name : {std::string(), std::string("[::1]:7471"), longest}) {
    SetName(&grant, name);
    const auto decoded = DecodeGrant(Padded(grant, 196));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(NameOf(*decoded), name);
  }
  EXPECT_FALSE(IsServerName(""));
  EXPECT_FALSE(IsServerName(longest + "n"));
  EXPECT_FALSE(IsServerName("two words"));
}

TEST(ConnectTest, FitsThePrivateDataOfRdmaCm) {
  EXPECT_LE(sizeof(ConnectRequest), 56u);
  EXPECT_LE(sizeof(Grant), 196u);
  EXPECT_LE(sizeof(Reject), 148u);
}

TEST(ConnectTest, RefusesTruncatedPrivateData) {
  for (size_t size = 0; size < sizeof(ConnectRequest); ++size) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(DecodeConnectRequest(Padded(AConnectRequest(), size)).status()));
  }
  for (size_t size = 0; size < sizeof(Grant); ++size) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeGrant(Padded(AGrant(), size)).status()));
  }
  const Reject reject = NewReject(RejectCode::kMalformed, "");
  for (size_t size = 0; size < sizeof(Reject); ++size) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeReject(Padded(reject, size)).status()));
  }
}

TEST(ConnectTest, RefusesAnotherMagicAndAllZeroes) {
  ConnectRequest request = AConnectRequest();
  request.magic = kGrantMagic;
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeConnectRequest(Padded(request, 56)).status()));
  Grant grant = AGrant();
  grant.magic = kRejectMagic;
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeGrant(Padded(grant, 196)).status()));
  const std::vector<std::byte> zeroes(196);
  EXPECT_FALSE(DecodeConnectRequest(zeroes).ok());
  EXPECT_FALSE(DecodeGrant(zeroes).ok());
  EXPECT_FALSE(DecodeReject(zeroes).ok());
}

TEST(ConnectTest, RefusesALengthThatIsTooShortOrLongerThanThePrivateData) {
  for (const uint16_t length : {0, 55, 57, 0xffff}) {
    ConnectRequest request = AConnectRequest();
    request.length = length;
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeConnectRequest(Padded(request, 56)).status()));
  }
}

// A later version may append to a message.
TEST(ConnectTest, AcceptsALongerMessageOfALaterVersion) {
  Grant grant = AGrant();
  grant.length = sizeof(grant) + 4;
  EXPECT_TRUE(DecodeGrant(Padded(grant, 196)).ok());
}

TEST(ConnectTest, TellsVersionsApart) {
  ConnectRequest request = AConnectRequest();
  request.version_min = kProtocolVersionMax + 1;
  request.version_max = 255;
  EXPECT_TRUE(absl::IsUnimplemented(DecodeConnectRequest(Padded(request, 56)).status()));
  request.version_min = 0;
  request.version_max = 0;
  EXPECT_TRUE(absl::IsUnimplemented(DecodeConnectRequest(Padded(request, 56)).status()));
  request.version_min = 0;
  request.version_max = 255;
  EXPECT_TRUE(DecodeConnectRequest(Padded(request, 56)).ok());
  request.version_min = 2;
  request.version_max = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeConnectRequest(Padded(request, 56)).status()));
  Grant grant = AGrant();
  grant.version = kProtocolVersionMax + 1;
  EXPECT_TRUE(absl::IsUnimplemented(DecodeGrant(Padded(grant, 196)).status()));
}

// Whoever asks for something that this server does not know relies on it.
TEST(ConnectTest, RefusesFeaturesThatItDoesNotKnow) {
  for (int bit = 0; bit < 16; ++bit) {
    ConnectRequest request = AConnectRequest();
    request.features = static_cast<uint16_t>(1u << bit);
    if (request.features == kConnectReplica || request.features == kConnectStanding) continue;
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeConnectRequest(Padded(request, 56)).status())) << bit;
    request.version_min = request.version_max = kProtocolVersionMax + 1;
    EXPECT_TRUE(absl::IsUnimplemented(DecodeConnectRequest(Padded(request, 56)).status())) << bit;
  }
}

TEST(ConnectTest, TakesAServersRequestToFollowAndAnOperatorsQuestion) {
  EXPECT_EQ(kConnectReplica, 2) << "docs/protocol.md has the values";
  EXPECT_EQ(kConnectStanding, 4);
  EXPECT_EQ(static_cast<uint32_t>(RejectCode::kStanding), 9u);
  for (const uint16_t feature : {kConnectReplica, kConnectStanding}) {
    ConnectRequest request = AConnectRequest();
    request.features = feature;
    const auto decoded = DecodeConnectRequest(Padded(request, 56));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->features, feature);
  }
}

struct GrantFault {
  const char* name;
  void (*apply)(Grant* grant);
};

class HostileGrant : public testing::TestWithParam<GrantFault> {};

TEST_P(HostileGrant, IsRefused) {
  Grant grant = AGrant();
  GetParam().apply(&grant);
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeGrant(Padded(grant, 196)).status()));
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileGrant,
    testing::Values(
        GrantFault{"RegionTooLarge", [](Grant* g) { g->region_bytes = kRegionBytesMax + 1; }},
        GrantFault{"IndexBehindTheRegion", [](Grant* g) { g->index.offset = g->region_bytes; }},
        GrantFault{"IndexOffsetOverflows", [](Grant* g) { g->index.offset = ~127ull; }},
        GrantFault{"IndexNotAligned", [](Grant* g) { g->index.offset += 8; }},
        GrantFault{"NoHomes", [](Grant* g) { g->index.homes = 0; }},
        GrantFault{"HomesOverflow", [](Grant* g) { g->index.homes = ~0ull; }},
        GrantFault{"NoStash", [](Grant* g) { g->index.stash_homes = 0; }},
        GrantFault{"StashHomesOverflow", [](Grant* g) { g->index.stash_homes = ~0ull; }},
        GrantFault{"RegionNotAligned", [](Grant* g) { g->region_address += 4; }},
        GrantFault{"LocksNotAligned", [](Grant* g) { g->lock_address += 1; }},
        GrantFault{"NoLockWords", [](Grant* g) { g->lock_words = 0; }},
        GrantFault{"NoCredits", [](Grant* g) { g->credits = 0; }},
        GrantFault{"NoConnectionId", [](Grant* g) { g->connection_id = 0; }},
        GrantFault{"LockModeZero", [](Grant* g) { g->lock_mode = 0; }},
        GrantFault{"LockModeUnknown", [](Grant* g) { g->lock_mode = 4; }},
        GrantFault{"ResumedNotABool", [](Grant* g) { g->resumed = 2; }},
        GrantFault{"ALeaseOfNoGroup", [](Grant* g) { g->primary_lease_ms = 1, g->history = 0; }},
        GrantFault{"NoSilence", [](Grant* g) { g->silence_ms = 0; }},
        GrantFault{"TooShortASilence", [](Grant* g) { g->silence_ms = kSilenceMsMin - 1; }},
        GrantFault{"AnOddName", [](Grant* g) { std::memcpy(g->name, "a@b", 3); }},
        GrantFault{"AnUnprintableName", [](Grant* g) { g->name[0] = '\n'; }}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(ConnectTest, AGrantOfAGroupMayComeWhenTheLeaseIsOver) {
  Grant grant = AGrant();
  grant.primary_lease_ms = 0;
  EXPECT_TRUE(DecodeGrant(Padded(grant, 196)).ok());
}

// The client itself reports it, and can still GET by RPC.
TEST(ConnectTest, LeavesTheIndexOfAnUnknownLayoutAlone) {
  Grant grant = AGrant();
  grant.layout_version = kLayoutVersion + 1;
  grant.index = {};
  EXPECT_TRUE(DecodeGrant(Padded(grant, 196)).ok());
}

TEST(ConnectTest, CutsAReasonToFitAndKeepsItPrintable) {
  const Reject reject = NewReject(RejectCode::kMalformed, std::string(500, 'x'));
  EXPECT_EQ(RejectReason(reject), std::string(sizeof(reject.reason), 'x'));
  Reject hostile = NewReject(RejectCode::kMalformed, "");
  std::memset(hostile.reason, 0x1b, sizeof(hostile.reason));
  EXPECT_EQ(RejectReason(hostile), std::string(sizeof(hostile.reason), '?'));
}

}  // namespace
}  // namespace gannet
