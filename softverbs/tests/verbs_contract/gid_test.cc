// The table of GIDs (ibv_query_gid(3), ibv_query_gid_ex(3), ibv_query_gid_table(3)).
#include <algorithm>

#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

class GidTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Of all functions, only this one tells how many entries there are. The kernel takes less than
    // 64 KiB of them.
    std::vector<ibv_gid_entry> all(1024);
    const ssize_t count = ibv_query_gid_table(verbs(), all.data(), all.size(), 0);
    ASSERT_GT(count, 0);
    table_.assign(all.begin(), all.begin() + count);
  }
  ibv_context* verbs() { return listener_.id->verbs; }

  Listener listener_;
  std::vector<ibv_gid_entry> table_;
};

TEST_F(GidTest, ATableThatDoesNotFitIsRefused) {
  std::vector<ibv_gid_entry> few(table_.size());
  EXPECT_EQ(ibv_query_gid_table(verbs(), few.data(), few.size() - 1, 0), -EINVAL);
  EXPECT_EQ(ibv_query_gid_table(verbs(), few.data(), few.size(), 0),
            static_cast<ssize_t>(few.size()));
}

TEST_F(GidTest, AllQueriesAgree) {
  for (const ibv_gid_entry& entry : table_) {
    ibv_gid gid{};
    ASSERT_EQ(ibv_query_gid(verbs(), static_cast<uint8_t>(entry.port_num),
                            static_cast<int>(entry.gid_index), &gid),
              0);
    EXPECT_EQ(std::memcmp(gid.raw, entry.gid.raw, sizeof(gid.raw)), 0);
    ibv_gid_entry same{};
    ASSERT_EQ(ibv_query_gid_ex(verbs(), entry.port_num, entry.gid_index, &same, 0), 0);
    EXPECT_EQ(std::memcmp(&same, &entry, sizeof(same)), 0);
  }
}

// rdma_bind_addr(3): the id's address is one of the device's, so others can reach it there.
TEST_F(GidTest, TheGidOfABoundIdIsInTheTableWithItsInterface) {
  SKIP_ON_IWARP("its only GID is made of a MAC address");
  const ibv_gid& bound = listener_.id->route.addr.addr.ibaddr.sgid;
  const auto found = std::ranges::find_if(table_, [&](const ibv_gid_entry& entry) {
    return std::memcmp(entry.gid.raw, bound.raw, sizeof(bound.raw)) == 0;
  });
  ASSERT_NE(found, table_.end());
  EXPECT_NE(found->ndev_ifindex, 0u);
}

TEST(DeviceTest, NamesItsVendor) { EXPECT_NE(TheDevice().attr.vendor_id, 0u); }

}  // namespace
}  // namespace verbs_contract
