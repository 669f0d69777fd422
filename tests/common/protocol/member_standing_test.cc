#include "common/protocol/member_standing.h"

#include <gtest/gtest.h>

#include <string>

#include "common/protocol/connect.h"

namespace gannet {
namespace {

const MemberStanding kJoining = {.role = MemberRole::kJoining,
                                 .epoch = 3,
                                 .incarnation = 0xb1,
                                 .applied = 8192,
                                 .uptime_s = 12,
                                 .joined_percent = 43};
constexpr char kText[] =
    "role=joining epoch=3 process=00000000000000b1 applied=8192 up_s=12 joined=43 lease=0";

TEST(MemberStandingTest, ParsesWhatItWrote) {
  EXPECT_EQ(ReasonOf(kJoining), kText);
  for (const MemberRole role :
       {MemberRole::kJoining, MemberRole::kBackup, MemberRole::kPrimary, MemberRole::kEnded}) {
    const MemberStanding longest = {.role = role,
                                    .epoch = UINT64_MAX,
                                    .incarnation = UINT64_MAX,
                                    .applied = UINT64_MAX,
                                    .uptime_s = UINT32_MAX,
                                    .joined_percent = 100,
                                    .lease_left_ms = UINT16_MAX};
    const Reject reject = NewReject(RejectCode::kStanding, ReasonOf(longest));
    EXPECT_EQ(ParseMemberStanding(RejectReason(reject)), longest) << "it does not fit";
    EXPECT_EQ(ParseMemberStanding(ReasonOf({.role = role})), MemberStanding{.role = role});
  }
}

TEST(MemberStandingTest, TakesWhatALaterVersionAppends) {
  EXPECT_EQ(ParseMemberStanding(std::string(kText) + " later=7"), kJoining);
  EXPECT_EQ(ParseMemberStanding(std::string(kText) + "7"), std::nullopt) << "lease=07";
}

TEST(MemberStandingTest, RefusesAllElse) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text = kText;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& reason :
       {std::string(), std::string("role=joining"), std::string("role=joining "),
        std::string(kText).substr(0, 80), with("joining", "Joining"), with("joining", "chief"),
        with("epoch=3", "epoch=03"), with("epoch=3", "epoch=-3"), with("epoch=3", "epoch="),
        with("epoch=3 ", "epoch=3  "), with("epoch=3 ", "epoch=3"),
        with("epoch=3", "epoch=18446744073709551616"), with("=00", "=0"), with("b1", "B1"),
        with("joined=43", "joined=101"), with("joined=43", "joined=300"),
        with("up_s=12", "up_s=4294967296"), with("lease=0", "lease=65536"),
        " " + std::string(kText)}) {
    EXPECT_EQ(ParseMemberStanding(reason), std::nullopt) << reason;
  }
}

}  // namespace
}  // namespace gannet
