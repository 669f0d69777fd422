#include "softverbs/base/populate.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace softverbs {
namespace {

// Three pages: readable, writable, and none.
class PopulateTest : public ::testing::TestWithParam<int (*)(uint64_t, size_t, bool)> {
 protected:
  PopulateTest() {
    void* data = mmap(nullptr, 3 * page_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(data, MAP_FAILED);
    begin_ = reinterpret_cast<uint64_t>(data);
    mprotect(reinterpret_cast<void*>(begin_ + page_), page_, PROT_READ | PROT_WRITE);
    munmap(reinterpret_cast<void*>(begin_ + 2 * page_), page_);
  }
  ~PopulateTest() override { munmap(reinterpret_cast<void*>(begin_), 2 * page_); }

  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  uint64_t begin_ = 0;
};

TEST_P(PopulateTest, TellsWhatMayBeDone) {
  const auto check = GetParam();
  EXPECT_EQ(check(begin_, 2 * page_, false), 0);
  EXPECT_EQ(check(begin_ + page_, page_, true), 0);
  EXPECT_EQ(check(begin_, 2 * page_, true), EFAULT) << "the first page is read-only";
  EXPECT_EQ(check(begin_ + page_, page_ + 1, false), EFAULT) << "its last byte is not mapped";
  EXPECT_EQ(check(begin_ + 2 * page_, 1, false), EFAULT);
  EXPECT_EQ(check(begin_ + 2 * page_ - 1, 1, true), 0) << "of pages only a part may be wanted";
}

INSTANTIATE_TEST_SUITE_P(WithTheKernel, PopulateTest, ::testing::Values(PopulatePages));
INSTANTIATE_TEST_SUITE_P(FromTheListOfMappings, PopulateTest, ::testing::Values(CheckMappings));

TEST(PopulatePagesTest, NothingIsAlwaysThere) { EXPECT_EQ(PopulatePages(4096, 0, true), 0); }

}  // namespace
}  // namespace softverbs
