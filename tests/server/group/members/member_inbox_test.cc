#include "server/group/members/member_inbox.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/server/group/move/fake_member_server.h"

namespace gannet {
namespace {

struct WokenServer final : FakeMemberServer {
  void WakeMember() override { ++woken; }
  int woken = 0;
};

TEST(MemberInboxTest, WakesTheMemberAndGivesEachThingOnce) {
  WokenServer server;
  MemberInbox inbox(&server);
  EXPECT_FALSE(inbox.has_mail());
  inbox.Put({.name = 5, .incoming = IncomingRequest(CmEvent{})});
  inbox.PutGone(4);
  inbox.PutGone(5);
  EXPECT_EQ(server.woken, 3);
  ASSERT_TRUE(inbox.has_mail());
  const MemberInbox::Mail mail = inbox.Take();
  ASSERT_EQ(mail.arrivals.size(), 1U);
  EXPECT_EQ(mail.arrivals[0].name, 5U);
  EXPECT_EQ(mail.gone, (std::vector<uint64_t>{4, 5}));
  EXPECT_FALSE(inbox.has_mail());
  EXPECT_TRUE(inbox.Take().gone.empty());
}

}  // namespace
}  // namespace gannet
