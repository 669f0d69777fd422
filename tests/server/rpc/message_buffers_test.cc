#include "server/rpc/message_buffers.h"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "common/base/page_size.h"
#include "gtest/gtest.h"
#include "server/rpc/buffer_pool.h"
#include "server/rpc/receive_buffers.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

constexpr uint32_t kBytes = 4096;
constexpr uint32_t kPiece = MessageBuffers::kPiece;

class MessageBuffersTest : public testing::Test {
 protected:
  // Returns how many of these pages take memory.
  static size_t Resident(std::byte* first, uint64_t bytes) {
    std::vector<unsigned char> pages(bytes / SystemPageBytes());
    EXPECT_EQ(mincore(first, bytes, pages.data()), 0);
    return std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; });
  }

  const Handle<ibv_pd> pd_{ibv_alloc_pd(TestDevice().verbs)};
  const std::vector<ibv_pd*> pds_{pd_.get()};
};

TEST_F(MessageBuffersTest, GrowsByPiecesToTheMost) {
  auto buffers = MessageBuffers::Create(pds_, 2 * kPiece + 2, kBytes);
  ASSERT_TRUE(buffers.ok()) << buffers.status();
  std::set<uint32_t> keys;
  for (const uint32_t count : {kPiece, 2 * kPiece, 2 * kPiece + 2}) {
    ASSERT_EQ(buffers->count(), count);
    for (uint32_t i = 0; i < count; ++i) {
      const ibv_sge sge = buffers->Sge(i, 100, 0);
      EXPECT_EQ(sge.addr, reinterpret_cast<uint64_t>(buffers->At(i)));
      EXPECT_EQ(buffers->At(i), buffers->At(0) + uint64_t{i} * kBytes);
      keys.insert(sge.lkey);
    }
    EXPECT_EQ(buffers->Grow(), count <= 2 * kPiece);
  }
  EXPECT_EQ(keys.size(), 3u) << "each piece has a key of its own";
}

TEST_F(MessageBuffersTest, EachRailHasKeysOfItsOwn) {
  const Handle<ibv_pd> other(ibv_alloc_pd(TestDevice().verbs));
  auto buffers =
      MessageBuffers::Create(std::vector<ibv_pd*>{pd_.get(), other.get()}, 2 * kPiece, kBytes);
  ASSERT_TRUE(buffers.ok()) << buffers.status();
  ASSERT_TRUE(buffers->Grow());
  std::set<uint32_t> keys;
  for (const uint32_t index : {uint32_t{0}, kPiece}) {
    for (const uint32_t rail : {0, 1}) {
      const ibv_sge sge = buffers->Sge(index, 100, rail);
      EXPECT_EQ(sge.addr, reinterpret_cast<uint64_t>(buffers->At(index)));
      keys.insert(sge.lkey);
    }
  }
  EXPECT_EQ(keys.size(), 4u);
}

TEST_F(MessageBuffersTest, TakesNoMemoryForWhatIsNotRegistered) {
  auto buffers = MessageBuffers::Create(pds_, 4 * kPiece, kBytes);
  ASSERT_TRUE(buffers.ok()) << buffers.status();
  EXPECT_EQ(Resident(buffers->At(0) + uint64_t{kPiece} * kBytes, uint64_t{3} * kPiece * kBytes),
            0u);
}

TEST_F(MessageBuffersTest, PoolRegistersWhatIsTaken) {
  constexpr uint32_t kCount = 4 * kPiece;
  auto pool = BufferPool::Create(pds_, kCount, kBytes);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->available(), kCount);
  EXPECT_TRUE(pool->MayTake(kPiece - 1)) << "a quarter of all may be taken by one";
  EXPECT_FALSE(pool->MayTake(kPiece));
  std::set<uint32_t> taken;
  for (uint32_t i = 0; i < kCount; ++i) {
    const auto index = pool->Take();
    ASSERT_TRUE(index);
    EXPECT_TRUE(taken.insert(*index).second);
    EXPECT_LT(*index, (i / kPiece + 1) * kPiece) << "registers more than it needs";
    EXPECT_EQ(pool->available(), kCount - i - 1);
  }
  EXPECT_FALSE(pool->Take());
  EXPECT_FALSE(pool->MayTake(0));
  pool->Give(kPiece + 3);
  EXPECT_EQ(pool->Take(), kPiece + 3);
}

// The queue takes no more than it has buffers for, and Reserve posts what it adds.
TEST_F(MessageBuffersTest, ReceivesGrowWithWhatIsAskedFor) {
  auto receives = ReceiveBuffers::Create(pd_.get(), 16 * kPiece);
  ASSERT_TRUE(receives.ok()) << receives.status();
  EXPECT_EQ((*receives)->count(), kPiece);
  EXPECT_TRUE((*receives)->Reserve(1));
  EXPECT_EQ((*receives)->count(), 2 * kPiece) << "some of them may wait to be posted";
  const uint64_t posts = (*receives)->posts();
  EXPECT_TRUE((*receives)->Reserve(kPiece));
  EXPECT_EQ((*receives)->posts(), posts);
  EXPECT_TRUE((*receives)->Reserve(kPiece + 1));
  EXPECT_EQ((*receives)->count(), 3 * kPiece);
  EXPECT_EQ((*receives)->posts(), posts + 1);
  EXPECT_TRUE((*receives)->Reserve(1'000'000));
  EXPECT_EQ((*receives)->count(), 16 * kPiece);
}

}  // namespace
}  // namespace gannet
