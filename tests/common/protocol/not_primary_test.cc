#include "common/protocol/not_primary.h"

#include <gtest/gtest.h>

#include "common/protocol/connect.h"

namespace gannet {
namespace {

TEST(NotPrimaryTest, ParsesWhatItWrote) {
  for (const NotPrimary& it :
       {NotPrimary{"10.0.0.2:7471", 7}, NotPrimary{"[fd00::1]:7471", 0},
        NotPrimary{"n1.example-2_a:1", UINT64_MAX},
        NotPrimary{std::string(NotPrimary::kAddressBytesMax, 'n'), UINT64_MAX}}) {
    EXPECT_EQ(ParseNotPrimary(ReasonOf(it)), it) << ReasonOf(it);
    const Reject reject = NewReject(RejectCode::kNotPrimary, ReasonOf(it));
    EXPECT_EQ(ParseNotPrimary(RejectReason(reject)), it) << "it does not fit into a reject";
  }
  EXPECT_EQ(ReasonOf({"10.0.0.2:7471", 7}), "primary=10.0.0.2:7471 epoch=7");
}

TEST(NotPrimaryTest, RefusesAllElse) {
  const std::string long_name(NotPrimary::kAddressBytesMax + 1, 'n');
  for (const std::string& reason :
       {std::string(), std::string("primary="), std::string("primary=a:1"),
        std::string("primary= epoch=1"), std::string("primary=a:1 epoch="),
        std::string("primary=a:1 epoch=-1"), std::string("primary=a:1 epoch=+1"),
        std::string("primary=a:1 epoch=01"), std::string("primary=a:1 epoch=1 "),
        std::string("primary=a:1 epoch=1x"), std::string("primary=a:1  epoch=1"),
        std::string("primary=a:1 epoch=18446744073709551616"), std::string(" primary=a:1 epoch=1"),
        std::string("primary=a@b:1 epoch=1"), std::string("primary=a,b:1 epoch=1"),
        std::string("primary=a:1\0 epoch=1", 20), "primary=" + long_name + " epoch=1"}) {
    EXPECT_EQ(ParseNotPrimary(reason), std::nullopt) << reason;
  }
}

}  // namespace
}  // namespace gannet
