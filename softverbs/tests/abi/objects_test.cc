#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "softverbs/tests/support/datagram_side.h"
#include "softverbs/tests/support/verbs_fixture.h"

// Objects of the device: how many there may be, domains with other names, and what the device says
// about itself.

namespace softverbs {
namespace {

class ObjectsTest : public ::testing::Test {
 protected:
  // Makes objects until that fails. Expects `limit` of them, ENOMEM, and room again once one is
  // gone.
  template <class Object>
  void ExpectAtMost(int limit, const std::function<Object*()>& make) {
    std::vector<Owned<Object>> objects;
    Owned<Object> made(make());
    while (made != nullptr && objects.size() <= static_cast<size_t>(limit)) {
      objects.push_back(std::move(made));
      errno = 0;
      made.reset(make());
    }
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(objects.size(), static_cast<size_t>(limit));
    objects.pop_back();
    EXPECT_NE(Owned<Object>(make()), nullptr);
  }
  ibv_device_attr Attributes() {
    ibv_device_attr attr;
    EXPECT_EQ(ibv_query_device(device_.get(), &attr), 0);
    return attr;
  }

  Owned<ibv_context> device_ = OpenDevice();
  Owned<ibv_pd> pd_{ibv_alloc_pd(device_.get())};
};

// ibv_query_device(3): the maximum of each kind that is supported.
TEST_F(ObjectsTest, ThereAreNoMoreDomainsThanTheDeviceSays) {
  ExpectAtMost<ibv_pd>(Attributes().max_pd - 1, [&] { return ibv_alloc_pd(device_.get()); });
}

TEST_F(ObjectsTest, ThereAreNoMoreCompletionQueuesThanTheDeviceSays) {
  ExpectAtMost<ibv_cq>(Attributes().max_cq,
                       [&] { return ibv_create_cq(device_.get(), 1, nullptr, nullptr, 0); });
}

TEST_F(ObjectsTest, ThereAreNoMoreSharedReceiveQueuesThanTheDeviceSays) {
  ExpectAtMost<ibv_srq>(Attributes().max_srq, [&] {
    ibv_srq_init_attr attr{};
    attr.attr = {1, 1, 0};
    return ibv_create_srq(pd_.get(), &attr);
  });
}

TEST_F(ObjectsTest, ThereAreNoMoreAddressHandlesThanTheDeviceSays) {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  ASSERT_EQ(ibv_query_gid(device_.get(), 1, 0, &attr.grh.dgid), 0);
  ExpectAtMost<ibv_ah>(Attributes().max_ah, [&] { return ibv_create_ah(pd_.get(), &attr); });
}

TEST_F(ObjectsTest, ThereAreNoMoreRegionsThanTheDeviceSays) {
  static char byte;
  ExpectAtMost<ibv_mr>(Attributes().max_mr, [&] {
    return ibv_reg_mr(pd_.get(), &byte, sizeof(byte), int{IBV_ACCESS_LOCAL_WRITE});
  });
}

TEST_F(ObjectsTest, ThereAreNoMoreQueuePairsThanTheDeviceSays) {
  const Owned<ibv_cq> cq(ibv_create_cq(device_.get(), 1, nullptr, nullptr, 0));
  ExpectAtMost<ibv_qp>(Attributes().max_qp, [&] {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq.get();
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {1, 1, 1, 1, 0};
    return ibv_create_qp(pd_.get(), &attr);
  });
}

struct FreeThreadDomain {
  void operator()(ibv_td* td) const { EXPECT_EQ(ibv_dealloc_td(td), 0); }
};

class ParentDomainTest : public ObjectsTest {
 protected:
  void SetUp() override {
    ibv_td_init_attr td{};
    thread_.reset(ibv_alloc_td(device_.get(), &td));
    ASSERT_NE(thread_, nullptr);
    ibv_parent_domain_init_attr attr{};
    attr.pd = pd_.get();
    attr.td = thread_.get();
    parent_.reset(ibv_alloc_parent_domain(device_.get(), &attr));
    ASSERT_NE(parent_, nullptr);
  }

  std::unique_ptr<ibv_td, FreeThreadDomain> thread_;
  Owned<ibv_pd> parent_;
};

// ibv_alloc_parent_domain(3): completely interchangeable with the domain used to create it.
TEST_F(ParentDomainTest, IsAnotherNameOfItsProtectionDomain) {
  SideOptions of_parent, of_base;
  of_parent.pd = parent_.get();
  of_base.pd = pd_.get();
  Pair pair(device_.get(), of_base, of_parent);
  // A region of the base serves a queue pair of the parent.
  TestMemory memory(MemoryKind::kPrivate, 4096);
  const Owned<ibv_mr> mr(ibv_reg_mr(pd_.get(), memory.data(), memory.size(), int{kAllAccess}));
  Address target = pair.b.address();
  target.memory = memory.address();
  target.rkey = mr->rkey;
  ASSERT_EQ(pair.a.Read(1, 0, 8, target, 0), 0);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
}

TEST_F(ParentDomainTest, KeepsItsPartsBusy) {
  EXPECT_EQ(ibv_dealloc_pd(pd_.get()), EBUSY);
  EXPECT_EQ(ibv_dealloc_td(thread_.get()), EBUSY);
}

TEST_F(ParentDomainTest, TakesNoMemoryOfTheApplication) {
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd_.get();
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  EXPECT_EQ(ibv_alloc_parent_domain(device_.get(), &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

bool IsAddress(const ibv_gid& gid, const sockaddr* address) {
  if (address->sa_family == AF_INET6) {
    return memcmp(gid.raw, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16) == 0;
  }
  return gid.raw[10] == 0xff &&
         memcmp(gid.raw + 12, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4) == 0;
}

class GidTableTest : public ObjectsTest {
 protected:
  void SetUp() override {
    table_.resize(256);
    const ssize_t count = ibv_query_gid_table(device_.get(), table_.data(), table_.size(), 0);
    ASSERT_GT(count, 0);
    table_.resize(static_cast<size_t>(count));
    ifaddrs* list = nullptr;
    ASSERT_EQ(getifaddrs(&list), 0);
    list_.reset(list);
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
      const int family = each->ifa_addr == nullptr ? AF_UNSPEC : each->ifa_addr->sa_family;
      if (family == AF_INET || family == AF_INET6) addresses_.push_back(each);
    }
  }
  // Returns the interface's address that an entry has, or null.
  const ifaddrs* AddressOf(const ibv_gid_entry& entry) {
    const auto found = std::ranges::find_if(addresses_, [&](const ifaddrs* each) {
      return IsAddress(entry.gid, each->ifa_addr) &&
             entry.ndev_ifindex == if_nametoindex(each->ifa_name);
    });
    return found == addresses_.end() ? nullptr : *found;
  }
  static bool IsLinkLocal(const ibv_gid& gid) { return gid.raw[0] == 0xfe && gid.raw[1] == 0x80; }

  std::vector<ibv_gid_entry> table_;
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list_{nullptr, freeifaddrs};
  std::vector<const ifaddrs*> addresses_;
};

TEST_F(GidTableTest, EveryAddressOfTheHostIsAGid) {
  for (const ifaddrs* each : addresses_) {
    EXPECT_TRUE(std::ranges::any_of(table_, [&](const ibv_gid_entry& entry) {
      return AddressOf(entry) == each;
    })) << each->ifa_name;
  }
}

// As in the kernel's table, some interfaces have a link-local address more, made of their MAC.
TEST_F(GidTableTest, EveryGidIsAnAddressOfTheHost) {
  for (const ibv_gid_entry& entry : table_) {
    EXPECT_TRUE(AddressOf(entry) != nullptr ||
                (IsLinkLocal(entry.gid) && entry.gid.raw[11] == 0xff && entry.gid.raw[12] == 0xfe))
        << entry.gid_index;
  }
}

TEST_F(GidTableTest, AddressesThatOtherHostsReachComeFirstAnd127001IsLast) {
  bool reachable = true;
  for (const ibv_gid_entry& entry : table_) {
    const ifaddrs* address = AddressOf(entry);
    const bool is_inner = address == nullptr || IsLinkLocal(entry.gid) ||
                          (address->ifa_flags & IFF_LOOPBACK) != 0 ||
                          (address->ifa_flags & IFF_RUNNING) == 0;
    EXPECT_TRUE(reachable || is_inner) << entry.gid_index;
    reachable = reachable && !is_inner;
  }
  const uint8_t loopback[6] = {0xff, 0xff, 127, 0, 0, 1};
  EXPECT_EQ(memcmp(table_.back().gid.raw + 10, loopback, sizeof(loopback)), 0);
}

// As adapters of Mellanox tell it, and UCX expects it.
TEST_F(ObjectsTest, TheServiceLevelOfADatagramTellsItsKind) {
  constexpr uint8_t kOverIpv6 = 9, kOverIpv4 = 10;
  DatagramSide sender(device_.get()), receiver(device_.get());
  for (const bool ipv4 : {false, true}) {
    const auto gid_index = FindGidIndex(device_.get(), ipv4);
    if (!gid_index) GTEST_SKIP() << "the host has no IPv6 address";
    const Owned<ibv_ah> handle = sender.Handle(*gid_index);
    ASSERT_EQ(receiver.PostReceive(1, 0, 1024), 0);
    ASSERT_EQ(sender.Send(handle.get(), receiver.qp->qp_num, "x").status, IBV_WC_SUCCESS);
    EXPECT_EQ(receiver.NextReceived().sl, ipv4 ? kOverIpv4 : kOverIpv6);
  }
}

}  // namespace
}  // namespace softverbs
