#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "softverbs/tests/support/later_function.h"
#include "softverbs/tests/support/verbs_fixture.h"

// Functions that came to libibverbs after version 44 of rdma-core, as a program calls them that was
// built on a newer one.

namespace softverbs {
namespace {

// ibv_mr_init_attr of version 65.
struct RegistrationInit {
  size_t length;
  int access;
  uint64_t comp_mask;
  uint64_t iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
  void* dmah;
  void* buf;
};

class LaterVerbsTest : public ::testing::Test {
 protected:
  // Bits of comp_mask. The last one means nothing yet.
  static constexpr uint64_t kIova = 1, kAddr = 2, kFd = 4, kFdOffset = 8, kDmah = 16, kBuf = 32,
                            kNew = 64;

  Owned<ibv_mr> Register(RegistrationInit init) {
    const auto reg =
        LaterFunction<ibv_mr*(ibv_pd*, RegistrationInit*)>("ibv_reg_mr_ex", "IBVERBS_1.15");
    errno = 0;
    return Owned<ibv_mr>(reg(pd_.get(), &init));
  }
  RegistrationInit Init(uint64_t mask) {
    return {.length = sizeof(bytes_),
            .access = IBV_ACCESS_LOCAL_WRITE,
            .comp_mask = mask,
            .iova = 0x10000,
            .addr = bytes_,
            .fd = -1,
            .fd_offset = 0,
            .dmah = nullptr,
            .buf = nullptr};
  }

  Owned<ibv_context> device_ = OpenDevice();
  Owned<ibv_pd> pd_{ibv_alloc_pd(device_.get())};
  char bytes_[4096] = {};
};

TEST_F(LaterVerbsTest, MemoryIsRegisteredByItsAttributes) {
  const Owned<ibv_mr> plain = Register(Init(kAddr));
  ASSERT_NE(plain, nullptr) << strerror(errno);
  EXPECT_EQ(plain->addr, bytes_);
  EXPECT_EQ(plain->length, sizeof(bytes_));
  EXPECT_NE(Register(Init(kAddr | kIova)), nullptr) << strerror(errno);
}

// Memory of other devices, hints for them, and what is not known yet.
TEST_F(LaterVerbsTest, ARegistrationOfWhatIsNotThereIsRefused) {
  for (const uint64_t mask : {kFd, kFd | kFdOffset | kAddr, kDmah | kAddr, kNew | kAddr}) {
    EXPECT_EQ(Register(Init(mask)), nullptr) << mask;
    EXPECT_EQ(errno, EOPNOTSUPP) << mask;
  }
  EXPECT_EQ(Register(Init(0)), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

class LaterBufferTest : public LaterVerbsTest {
 protected:
  void SetUp() override {
    const auto allocate =
        LaterFunction<void*(ibv_pd*, size_t, void**)>("ibv_alloc_buf", "IBVERBS_1.17");
    addr_ = static_cast<char*>(allocate(pd_.get(), kBytes, &buf_));
    ASSERT_NE(addr_, nullptr);
    ASSERT_NE(buf_, nullptr);
  }
  void TearDown() override { LaterFunction<void(void*)>("ibv_free_buf", "IBVERBS_1.17")(buf_); }

  Owned<ibv_mr> RegisterBuffer(ibv_pd* pd, char* addr, size_t length) {
    const auto reg = LaterFunction<ibv_mr*(ibv_pd*, void*, void*, size_t, int)>("ibv_reg_buf_mr",
                                                                                "IBVERBS_1.17");
    errno = 0;
    return Owned<ibv_mr>(reg(pd, buf_, addr, length, IBV_ACCESS_LOCAL_WRITE));
  }

  static constexpr size_t kBytes = 10'000;
  char* addr_ = nullptr;
  void* buf_ = nullptr;
};

TEST_F(LaterBufferTest, ABufferIsRegisteredWholeAndInPart) {
  EXPECT_EQ(reinterpret_cast<uint64_t>(addr_) % 4096, 0u);
  memset(addr_, 1, kBytes);
  EXPECT_NE(RegisterBuffer(pd_.get(), addr_, kBytes), nullptr) << strerror(errno);
  EXPECT_NE(RegisterBuffer(pd_.get(), addr_ + 100, kBytes - 100), nullptr) << strerror(errno);
}

// ibv_alloc_buf(3): in the same domain, within the buffer, and not by other memory's description.
TEST_F(LaterBufferTest, OtherMemoryOrAnotherDomainIsRefused) {
  const Owned<ibv_pd> other(ibv_alloc_pd(device_.get()));
  EXPECT_EQ(RegisterBuffer(other.get(), addr_, kBytes), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(RegisterBuffer(pd_.get(), addr_ + 1, kBytes), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(RegisterBuffer(pd_.get(), addr_ - 1, 2), nullptr);
  EXPECT_EQ(errno, EINVAL);
  RegistrationInit init = Init(kBuf | kAddr | kFd);
  init.buf = buf_;
  EXPECT_EQ(Register(init), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(LaterBufferTest, ABufferIsNotOneOfAnotherDevice) {
  errno = 0;
  EXPECT_EQ(LaterFunction<int(void*)>("ibv_export_buf_dmabuf_fd", "IBVERBS_1.18")(buf_), -1);
  EXPECT_EQ(errno, ENODATA);
}

TEST_F(LaterVerbsTest, ThePortHasASpeed) {
  const auto query =
      LaterFunction<int(ibv_context*, uint32_t, uint64_t*)>("ibv_query_port_speed", "IBVERBS_1.16");
  uint64_t speed = 0;
  EXPECT_EQ(query(device_.get(), 1, &speed), 0);
  EXPECT_EQ(speed, 1000u);  // of 100 Mbit/s
  EXPECT_EQ(query(device_.get(), 2, &speed), EINVAL);
}

// Functions that return a pointer or a descriptor, and those that return an error.
TEST_F(LaterVerbsTest, WhatTheDeviceLacksIsNotSupported) {
  struct Row {
    const char* name;
    const char* version;
    int64_t result;
  };
  // All take a few pointers or numbers, and look at none.
  const Row rows[] = {{"ibv_alloc_dmah", "IBVERBS_1.15", 0},
                      {"ibv_create_comp_cntr", "IBVERBS_1.18", 0},
                      {"ibv_dm_export_dmabuf_fd", "IBVERBS_1.16", -1},
                      {"ibv_dealloc_dmah", "IBVERBS_1.15", EOPNOTSUPP},
                      {"_ibv_query_comp_cntr_caps", "IBVERBS_1.18", EOPNOTSUPP},
                      {"ibv_destroy_comp_cntr", "IBVERBS_1.18", EOPNOTSUPP},
                      {"ibv_set_comp_cntr", "IBVERBS_1.18", EOPNOTSUPP},
                      {"ibv_set_err_comp_cntr", "IBVERBS_1.18", EOPNOTSUPP},
                      {"ibv_inc_comp_cntr", "IBVERBS_1.18", EOPNOTSUPP},
                      {"ibv_inc_err_comp_cntr", "IBVERBS_1.18", EOPNOTSUPP},
                      {"ibv_read_comp_cntr", "IBVERBS_1.18", EOPNOTSUPP},
                      {"ibv_read_err_comp_cntr", "IBVERBS_1.18", EOPNOTSUPP},
                      {"ibv_qp_attach_comp_cntr", "IBVERBS_1.18", EOPNOTSUPP}};
  for (const Row& row : rows) {
    errno = 0;
    // A pointer's function returns eight bytes, the others four.
    if (row.result == 0) {
      const auto make = LaterFunction<void*(void*, void*, void*)>(row.name, row.version);
      EXPECT_EQ(make(device_.get(), nullptr, nullptr), nullptr) << row.name;
    } else {
      const auto call = LaterFunction<int(void*, void*, void*)>(row.name, row.version);
      EXPECT_EQ(call(device_.get(), nullptr, nullptr), row.result) << row.name;
    }
    EXPECT_EQ(errno, EOPNOTSUPP) << row.name;
  }
}

}  // namespace
}  // namespace softverbs
