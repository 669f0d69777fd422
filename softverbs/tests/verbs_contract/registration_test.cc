// Registration of memory (ibv_reg_mr(3), ibv_rereg_mr(3)): a device pins the pages. So it refuses
// those that are not there or do not allow what is asked for, and does not let a peer find that
// out.
#include <sys/mman.h>
#include <unistd.h>

#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

// Some pages of their own, between others that are not mapped.
class Pages {
 public:
  explicit Pages(size_t count, int protection = PROT_READ | PROT_WRITE, int fd = -1)
      : size_(count * PageBytes()) {
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    data_ = mmap(nullptr, size_, protection, flags, fd, 0);
    EXPECT_NE(data_, MAP_FAILED) << strerror(errno);
  }
  ~Pages() { munmap(data_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  static size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
  uint8_t* data() { return static_cast<uint8_t*>(data_); }
  uint8_t* page(size_t i) { return data() + i * PageBytes(); }
  size_t size() const { return size_; }
  uint64_t address() { return reinterpret_cast<uint64_t>(data_); }

 private:
  size_t size_;
  void* data_;
};

class RegistrationTest : public ::testing::Test {
 protected:
  static constexpr int kWriteAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

  ibv_pd* pd() { return pair_.server().pd; }
  void ExpectFault(Pages& pages, int access) {
    errno = 0;
    ibv_mr* mr = ibv_reg_mr(pd(), pages.data(), pages.size(), access);
    EXPECT_EQ(mr, nullptr);
    EXPECT_EQ(errno, EFAULT);
    if (mr != nullptr) ibv_dereg_mr(mr);
  }
  ibv_wc_status ReadFrom(uint64_t address, uint32_t rkey) {
    ibv_sge sge = pair_.client().buffer->Sge(0, 8);
    return Do(pair_.client(), Read(&sge, address, rkey)).status;
  }

  Pair pair_;
};

TEST_F(RegistrationTest, NoBytesAtTheBeginningOfAPageAreRefused) {
  Pages pages(1);
  errno = 0;
  ibv_mr* mr = ibv_reg_mr(pd(), pages.data(), 0, kWriteAccess);
  EXPECT_EQ(mr, nullptr);
  EXPECT_EQ(errno, EINVAL);
  if (mr != nullptr) ibv_dereg_mr(mr);
}

TEST_F(RegistrationTest, MemoryWithAHoleIsRefused) {
  Pages pages(3);
  munmap(pages.page(1), Pages::PageBytes());
  ExpectFault(pages, kWriteAccess);
  ExpectFault(pages, IBV_ACCESS_REMOTE_READ);
}

TEST_F(RegistrationTest, MemoryWithoutAccessIsRefused) {
  Pages pages(2);
  mprotect(pages.page(1), Pages::PageBytes(), PROT_NONE);
  ExpectFault(pages, kWriteAccess);
}

TEST_F(RegistrationTest, ReadOnlyMemoryIsRegisteredForReadingOnly) {
  Pages pages(1, PROT_READ);
  ExpectFault(pages, kWriteAccess);
  ibv_mr* mr = ibv_reg_mr(pd(), pages.data(), pages.size(), int{IBV_ACCESS_REMOTE_READ});
  ASSERT_NE(mr, nullptr) << strerror(errno);
  EXPECT_EQ(ReadFrom(pages.address(), mr->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(RegistrationTest, MemoryBehindTheEndOfItsFileIsRefused) {
  const int file = memfd_create("verbs-contract", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(Pages::PageBytes())), 0);
  Pages pages(2, PROT_READ | PROT_WRITE, file);
  ExpectFault(pages, kWriteAccess);
  close(file);
}

TEST_F(RegistrationTest, ARefusedRegistrationTakesNothing) {
  Pages pages(2);
  munmap(pages.page(1), Pages::PageBytes());
  for (int i = 0; i < 100; ++i) ExpectFault(pages, kWriteAccess);
  ibv_mr* mr = ibv_reg_mr(pd(), pages.data(), Pages::PageBytes(), kWriteAccess);
  ASSERT_NE(mr, nullptr) << strerror(errno);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// ibv_reg_mr(3): windows may be bound to it, if the device has any.
TEST_F(RegistrationTest, TheRightToBindWindowsMayBeAskedFor) {
  Pages pages(1);
  ibv_mr* mr = ibv_reg_mr(pd(), pages.data(), pages.size(), kWriteAccess | IBV_ACCESS_MW_BIND);
  ASSERT_NE(mr, nullptr) << strerror(errno);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// ibv_reg_mr(3): IBV_ACCESS_ZERO_BASED makes addresses offsets, for both keys. With memory of its
// own process only, and with a file's, which peers may map.
TEST_F(RegistrationTest, AddressesOfAZeroBasedRegionAreOffsets) {
  if (TheDevice().is_of_kernel()) GTEST_SKIP() << "its driver ignores the flag";
  const int file = memfd_create("verbs-contract", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(Pages::PageBytes())), 0);
  for (const int fd : {-1, file}) {
    Pages pages(1, PROT_READ | PROT_WRITE, fd);
    pages.data()[8] = 0x6b;
    constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED;
    ibv_mr* mr = ibv_reg_mr(pd(), pages.data(), pages.size(), int{kAccess});
    ASSERT_NE(mr, nullptr) << strerror(errno);
    EXPECT_EQ(mr->addr, pages.data());
    EXPECT_EQ(ReadFrom(8, mr->rkey), IBV_WC_SUCCESS);
    EXPECT_EQ(pair_.client().buffer->data()[0], 0x6b);
    ibv_sge sink{16, 8, mr->lkey};
    EXPECT_EQ(Do(pair_.server(),
                 Read(&sink, pair_.client().buffer->address(), pair_.client().buffer->rkey()))
                  .status,
              IBV_WC_SUCCESS);
    EXPECT_EQ(pages.data()[16], 0x6b);
    // This breaks the connection, so it comes last.
    if (fd == file) {
      EXPECT_NE(ReadFrom(pages.address(), mr->rkey), IBV_WC_SUCCESS);
    }
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  }
  close(file);
}

class ReregistrationTest : public RegistrationTest {
 protected:
  void SetUp() override {
    mr_ = ibv_reg_mr(pd(), old_.data(), old_.size(), int{IBV_ACCESS_REMOTE_READ});
    ASSERT_NE(mr_, nullptr) << strerror(errno);
    std::memset(new_.data(), 0x6b, new_.size());
  }
  void TearDown() override { EXPECT_EQ(ibv_dereg_mr(mr_), 0); }
  // Returns false if the device does not do that.
  bool Change(int flags, ibv_pd* pd, Pages* pages) {
    return ibv_rereg_mr(mr_, flags, pd, pages == nullptr ? nullptr : pages->data(),
                        pages == nullptr ? 0 : pages->size(), 0) == 0;
  }

  Pages old_{1}, new_{2};
  ibv_mr* mr_ = nullptr;
};

TEST_F(ReregistrationTest, MovesTheRegionToOtherMemory) {
  if (!Change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, &new_)) GTEST_SKIP() << "it can not";
  EXPECT_EQ(mr_->addr, new_.data());
  EXPECT_EQ(mr_->length, new_.size());
  EXPECT_EQ(ReadFrom(new_.address(), mr_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(pair_.client().buffer->data()[0], 0x6b);
  EXPECT_EQ(ReadFrom(old_.address(), mr_->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(ReregistrationTest, MovesTheRegionToAnotherDomain) {
  if (!Change(IBV_REREG_MR_CHANGE_PD, pair_.client().pd, nullptr)) GTEST_SKIP() << "it can not";
  EXPECT_EQ(mr_->pd, pair_.client().pd);
  EXPECT_EQ(ReadFrom(old_.address(), mr_->rkey), IBV_WC_REM_ACCESS_ERR);
  ASSERT_TRUE(Change(IBV_REREG_MR_CHANGE_PD, pd(), nullptr));  // so that the domains can go
}

TEST_F(ReregistrationTest, RefusesArgumentsThatDoNotFitTogether) {
  EXPECT_NE(ibv_rereg_mr(mr_, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 0, 0), 0);
  EXPECT_NE(ibv_rereg_mr(mr_, 1 << 20, nullptr, nullptr, 0, 0), 0);
}

}  // namespace
}  // namespace verbs_contract
