// Large values: in memory of the caller's own, and in strings; scattered and gathered; replaced
// while they are read.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = 1 << 20;

// Bytes that tell where they belong and which value they are of.
std::string Pattern(size_t bytes, uint64_t id) {
  std::string value(bytes, '\0');
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    const uint64_t word = (id << 40) ^ (i * 0x9e3779b97f4a7c15u >> 24);
    std::memcpy(value.data() + i, &word, 8);
  }
  return value;
}
std::string_view Text(const RegisteredMemory& memory) {
  return {reinterpret_cast<const char*>(memory.data()), memory.size()};
}

class LargeValuesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ServerProcess({"--memory=512M"}); }
  static void TearDownTestSuite() { delete server_; }

  void SetUp() override {
    auto client = Client::Connect({server_->endpoint()}, PatientOptions());
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  RegisteredMemory Allocate(uint64_t bytes) {
    auto memory = client_->AllocateMemory(bytes);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return memory.ok() ? *std::move(memory) : RegisteredMemory();
  }

  static ServerProcess* server_;
  std::unique_ptr<Client> client_;
};
ServerProcess* LargeValuesTest::server_ = nullptr;

TEST_F(LargeValuesTest, GoesThroughStringsUpTo64MiB) {
  for (const size_t bytes : {4048 * size_t{1}, size_t{4049}, size_t{4096}, size_t{5000},
                             65'536 * size_t{1}, kMiB + 1, 9 * kMiB, 64 * kMiB}) {
    const std::string value = Pattern(bytes, bytes);
    const auto version = client_->Put("string", value, {.flags = 7});
    ASSERT_TRUE(version.ok()) << bytes << ": " << version.status();
    for (int again = 0; again < 2; ++again) {
      const auto got = client_->Get("string");
      ASSERT_TRUE(got.ok() && got->has_value()) << bytes << ": " << got.status();
      EXPECT_TRUE((*got)->data == value) << bytes;
      EXPECT_EQ((*got)->info.version, *version);
      EXPECT_EQ((*got)->info.flags, 7u);
    }
  }
  const auto longer = client_->Put("string", std::string(64 * kMiB + 1, 'x'));
  EXPECT_EQ(longer.status().code(), absl::StatusCode::kInvalidArgument) << longer.status();
  ASSERT_TRUE(client_->Delete("string").ok());
}

// There is one buffer for values over 8 MiB.
TEST_F(LargeValuesTest, AViewKeepsNoBufferFromCallsMadeMeanwhile) {
  ASSERT_TRUE(client_->Put("view", Pattern(9 * kMiB, 1)).ok());
  ASSERT_TRUE(client_->Put("other", Pattern(9 * kMiB, 2)).ok());
  const auto found = client_->GetView("view", [&](std::string_view value, const ItemInfo& info) {
    EXPECT_EQ(info.value_bytes, value.size());
    const auto other = client_->Get("other");
    ASSERT_TRUE(other.ok() && other->has_value()) << other.status();
    EXPECT_TRUE((*other)->data == Pattern(9 * kMiB, 2));
    EXPECT_TRUE(value == Pattern(9 * kMiB, 1));
  });
  EXPECT_TRUE(found.ok() && *found) << found.status();
  for (const char* key : {"view", "other"}) ASSERT_TRUE(client_->Delete(key).ok());
}

TEST_F(LargeValuesTest, LandsInRegisteredMemory) {
  for (const size_t bytes : {size_t{100}, size_t{5000}, kMiB, 16 * kMiB}) {
    const std::string value = Pattern(bytes, bytes);
    RegisteredMemory from = Allocate(bytes);
    std::memcpy(from.data(), value.data(), bytes);
    const auto version = client_->PutFrom("registered", from);
    ASSERT_TRUE(version.ok()) << version.status();
    std::vector<std::byte> own(bytes + 100, std::byte{1});
    const auto registered = client_->Register(own);
    ASSERT_TRUE(registered.ok()) << registered.status();
    for (int again = 0; again < 2; ++again) {
      std::fill(own.begin(), own.end(), std::byte{1});
      const auto info = client_->GetInto("registered", *registered);
      ASSERT_TRUE(info.ok() && info->has_value()) << info.status();
      EXPECT_EQ((*info)->value_bytes, bytes);
      EXPECT_EQ((*info)->version, *version);
      EXPECT_TRUE(std::memcmp(own.data(), value.data(), bytes) == 0) << bytes;
      EXPECT_EQ(own[bytes], std::byte{1}) << "bytes behind the value were changed";
    }
  }
  const auto absent = client_->GetInto("never put", Allocate(10'000));
  ASSERT_TRUE(absent.ok()) << absent.status();
  EXPECT_FALSE(absent->has_value());
}

TEST_F(LargeValuesTest, ScattersAndGathers) {
  constexpr size_t kPieces = 29, kBytes = 40'000;  // a block of an inference server, by layer
  const std::string value = Pattern(kPieces * kBytes, 3);
  const RegisteredMemory from = Allocate(2 * kPieces * kBytes);
  const RegisteredMemory into = Allocate(2 * kPieces * kBytes);
  std::vector<RegisteredSpan> from_spans, into_spans;
  for (size_t i = 0; i < kPieces; ++i) {
    const size_t at = 2 * (kPieces - 1 - i) * kBytes;  // apart, and in another order
    std::memcpy(from.data() + at, value.data() + i * kBytes, kBytes);
    from_spans.emplace_back(from, at, kBytes);
    into_spans.emplace_back(into, at, kBytes);
  }
  ASSERT_TRUE(client_->PutFrom("block", from_spans).ok());
  const auto got = client_->Get("block");
  ASSERT_TRUE(got.ok() && got->has_value()) << got.status();
  EXPECT_TRUE((*got)->data == value);
  const auto info = client_->GetInto("block", into_spans);
  ASSERT_TRUE(info.ok() && info->has_value()) << info.status();
  EXPECT_TRUE(Text(into) == Text(from));
  // Room for a part of it, which ends within a span.
  into_spans.resize(2);
  into_spans[1].bytes = 100;
  std::memset(into.data(), 0, into.size());
  ASSERT_TRUE(client_->GetInto("block", into_spans).ok());
  EXPECT_EQ(Text(into).substr(into_spans[1].offset, 100), value.substr(kBytes, 100));
  EXPECT_EQ(into.data()[into_spans[1].offset + 100], std::byte{0});
}

TEST_F(LargeValuesTest, GetsManyAtOnce) {
  constexpr size_t kBytes = 100'000;
  const RegisteredMemory memory = Allocate(10 * kBytes);
  std::vector<RegisteredSpan> spans;
  std::vector<std::string> keys;
  for (size_t i = 0; i < 10; ++i) {
    keys.push_back("many " + std::to_string(i));
    spans.emplace_back(memory, i * kBytes, kBytes);
    if (i != 4) {
      ASSERT_TRUE(client_->Put(keys[i], Pattern(kBytes, i)).ok());
    }
  }
  std::vector<GetTarget> targets;
  for (size_t i = 0; i < 10; ++i) targets.push_back({keys[i], std::span(&spans[i], 1)});
  const auto infos = client_->MultiGetInto(targets);
  ASSERT_EQ(infos.size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(infos[i].ok()) << infos[i].status();
    EXPECT_EQ(infos[i]->has_value(), i != 4);
    if (i == 4) continue;
    EXPECT_TRUE(Text(memory).substr(i * kBytes, kBytes) == Pattern(kBytes, i)) << i;
  }
}

TEST_F(LargeValuesTest, RefusesMemoryThatItCannotUse) {
  const auto code = [&](const std::vector<RegisteredSpan>& spans) {
    return client_->GetInto("key", spans).status().code();
  };
  const RegisteredMemory memory = Allocate(8192);
  EXPECT_EQ(code({}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({RegisteredSpan()}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({RegisteredSpan(memory, 8000, 193)}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({RegisteredSpan(memory, 0, 0)}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(std::vector<RegisteredSpan>(65, memory)), absl::StatusCode::kInvalidArgument);
  auto other = Client::Connect({server_->endpoint()}, PatientOptions());
  ASSERT_TRUE(other.ok()) << other.status();
  const auto others = (*other)->AllocateMemory(8192);
  EXPECT_EQ(code({*others}), absl::StatusCode::kInvalidArgument);
}

TEST_F(LargeValuesTest, RefusesToPutFromMemoryThatNoServerMayRead) {
  std::vector<std::byte> own(8192);
  const auto memory = client_->Register(own, {.remote_read = false});
  ASSERT_TRUE(memory.ok()) << memory.status();
  const auto version = client_->PutFrom("key", *memory);
  EXPECT_EQ(version.status().code(), absl::StatusCode::kInvalidArgument) << version.status();
}

TEST_F(LargeValuesTest, SaysThatTheDeviceCannotRegisterDmabufs) {
  const auto memory = client_->RegisterDmabuf(STDIN_FILENO, 0, 4096);
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kUnimplemented) << memory.status();
  EXPECT_THAT(std::string(memory.status().message()), HasSubstr("dma-buf"));
}

// One client replaces a value all the time, by values of one pattern each. The others must never
// see a mixture.
TEST_F(LargeValuesTest, IsNeverTornWhileItIsReplaced) {
  constexpr size_t kBytes = 300'000;
  ASSERT_TRUE(client_->Put("hot", Pattern(kBytes, 1)).ok());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    auto client = Client::Connect({server_->endpoint()}, PatientOptions());
    ASSERT_TRUE(client.ok()) << client.status();
    for (uint64_t id = 2; !stop.load(); ++id) {
      const auto version = (*client)->Put("hot", Pattern(kBytes - id % 1000 * 8, id));
      EXPECT_TRUE(version.ok()) << version.status();
    }
  });
  const RegisteredMemory memory = Allocate(kBytes);
  uint64_t last_version = 0;
  for (int i = 0; i < 300; ++i) {
    const auto info = client_->GetInto("hot", memory);
    ASSERT_TRUE(info.ok() && info->has_value()) << info.status();
    uint64_t first;
    std::memcpy(&first, memory.data(), 8);
    const std::string expected = Pattern((*info)->value_bytes, first >> 40);
    EXPECT_TRUE(Text(memory).substr(0, expected.size()) == expected) << "torn";
    EXPECT_GE((*info)->version, last_version);
    last_version = (*info)->version;
  }
  stop = true;
  writer.join();
}

// A value with a time to live that may be over: the server says whether it is, and where it is.
TEST_F(LargeValuesTest, AsksTheServerWhetherAValueIsExpired) {
  const std::string value = Pattern(50'000, 9);
  ASSERT_TRUE(client_->Put("short-lived", value, {.ttl = std::chrono::milliseconds(200)}).ok());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < deadline) {
    const auto got = client_->Get("short-lived");
    ASSERT_TRUE(got.ok()) << got.status();
    if (!got->has_value()) return;
    EXPECT_TRUE((*got)->data == value);
  }
  FAIL() << "the value never expired";
}

TEST_F(LargeValuesTest, AsyncClientReadsAndWritesRegisteredMemory) {
  Options options = PatientOptions();
  options.depth = 16;
  auto async = AsyncClient::Connect({server_->endpoint()}, options);
  ASSERT_TRUE(async.ok()) << async.status();
  constexpr size_t kBytes = 64'000;
  const auto memory = (*async)->AllocateMemory(16 * kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  std::vector<RegisteredSpan> spans;
  for (size_t i = 0; i < 16; ++i) {
    spans.emplace_back(*memory, i * kBytes, kBytes);
    std::memcpy(memory->data() + i * kBytes, Pattern(kBytes, i).data(), kBytes);
  }
  Completion done[16];
  const auto finish = [&] {
    for (size_t n = 0; n < 16;) {
      const size_t got = (*async)->Wait(done, std::chrono::seconds(10));
      ASSERT_GT(got, 0u);
      for (size_t i = 0; i < got; ++i) EXPECT_EQ(done[i].code, absl::StatusCode::kOk);
      n += got;
    }
  };
  for (size_t i = 0; i < 16; ++i) {
    ASSERT_TRUE((*async)->PutFrom("async " + std::to_string(i), {&spans[i], 1}, {}, i).ok());
  }
  finish();
  for (int again = 0; again < 2; ++again) {
    std::memset(memory->data(), 0, memory->size());
    for (size_t i = 0; i < 16; ++i) {
      ASSERT_TRUE((*async)->GetInto("async " + std::to_string(i), {&spans[i], 1}, i).ok());
    }
    finish();
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_TRUE(Text(*memory).substr(i * kBytes, kBytes) == Pattern(kBytes, i)) << i;
    }
  }
  EXPECT_EQ(done[0].type, OpType::kGetInto);
}

// The client knows the item's head from an earlier GET, which is out of date then.
TEST_F(LargeValuesTest, AsyncClientFindsTheValueThatReplacedOne) {
  auto async = AsyncClient::Connect({server_->endpoint()}, PatientOptions());
  ASSERT_TRUE(async.ok()) << async.status();
  const auto memory = (*async)->AllocateMemory(20'000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const RegisteredSpan whole(*memory), part(*memory, 0, 8000);
  const auto get = [&](const RegisteredSpan& into) {
    EXPECT_TRUE((*async)->GetInto("replaced", {&into, 1}, 7).ok());
    Completion done;
    EXPECT_EQ((*async)->Wait({&done, 1}, std::chrono::seconds(10)), 1u);
    EXPECT_EQ(done.code, absl::StatusCode::kOk);
    EXPECT_EQ(done.user_data, 7u);
    return done;
  };
  for (uint64_t id = 1; id <= 3; ++id) {
    const size_t bytes = 20'000 - 4000 * id;
    const std::string value = Pattern(bytes, id);
    const auto version = client_->Put("replaced", value, {.flags = static_cast<uint32_t>(id)});
    ASSERT_TRUE(version.ok()) << version.status();
    for (int again = 0; again < 3; ++again) {
      std::memset(memory->data(), 0, memory->size());
      const Completion done = get(whole);
      EXPECT_TRUE(done.found);
      EXPECT_EQ(done.info.version, *version);
      EXPECT_EQ(done.info.flags, id);
      EXPECT_EQ(done.info.value_bytes, bytes);
      EXPECT_TRUE(Text(*memory).substr(0, bytes) == value) << id;
      if (again > 0) {
        EXPECT_EQ(done.cost.reads, 2u) << "value and commit word";
      }
    }
  }
  ASSERT_TRUE(client_->Put("replaced", Pattern(16'000, 4)).ok());
  for (int again = 0; again < 2; ++again) {
    std::memset(memory->data(), 0, memory->size());
    EXPECT_EQ(get(part).info.value_bytes, 16'000u);
    EXPECT_TRUE(Text(*memory).substr(0, 8000) == Pattern(16'000, 4).substr(0, 8000));
    EXPECT_EQ(memory->data()[8000], std::byte{0}) << "nothing behind the span is written";
  }
  ASSERT_TRUE(client_->Delete("replaced").ok());
  EXPECT_FALSE(get(whole).found);
}

}  // namespace
}  // namespace gannet
