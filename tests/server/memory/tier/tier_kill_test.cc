// A process that writes to a tier is killed again and again. Its stubs are in memory that it shares
// with the next one, as those in a memory file are.

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "server/memory/tier/tier_file.h"
#include "server/memory/tier/tier_writer.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/memory/tier/some_tier.h"

namespace gannet {
namespace {

constexpr uint64_t kStubs = 100;
constexpr int kKills = 20;

// A stub is there while its version is not 0.
struct SharedStubs {
  std::array<std::atomic<uint64_t>, kStubs> versions;
  std::array<TierPlace, kStubs> places;
  std::atomic<uint64_t> version;  // the last one given
};

class KilledItems : public TierItems {
 public:
  explicit KilledItems(SharedStubs* stubs) : stubs_(*stubs) {}

  std::optional<TierRecord> NextToWrite() override {
    const uint64_t version = ++stubs_.version;
    const uint64_t key = version * 7 % kStubs;
    key_ = SomeKey(key);
    value_ = SomeValue(version);
    return TierRecord{.key = key_, .value = value_, .hash = key, .version = version};
  }
  void Written(uint64_t hash, const TierPlace& place) override {
    stubs_.versions[hash] = 0;
    stubs_.places[hash] = place;
    stubs_.versions[hash] = place.version;
  }
  void NotWritten(const TierPlace&) override {}
  void Forget(const TierCircle::Segment& segment, TierCircle* /*circle*/) override {
    for (uint64_t i = 0; i < kStubs; ++i) {
      const uint64_t position = stubs_.places[i].position;
      if (position >= segment.begin && position < segment.end) stubs_.versions[i] = 0;
    }
  }

 private:
  SharedStubs& stubs_;
  std::string key_;
  std::string value_;
};

class TierKillTest : public testing::Test {
 protected:
  void SetUp() override {
    void* const memory = mmap(nullptr, sizeof(SharedStubs), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    stubs_ = new (memory) SharedStubs();
    const auto file = TierFile::Open(Options());
    if (!file.ok() && absl::StrContains(file.status().message(), "tmpfs")) {
      GTEST_SKIP() << "the directory for tests is on tmpfs, where no tier may be";
    }
    ASSERT_TRUE(file.ok()) << file.status();
  }
  void TearDown() override { munmap(stubs_, sizeof(SharedStubs)); }

  TierFileOptions Options() const {
    return {.directory = directory_.path(),
            .bytes = kTierSegmentsMin * kSomeSegmentBytes,
            .segment_bytes = kSomeSegmentBytes,
            .keeps = true};
  }
  TierCircle::Options CircleOf(TierFile* file) const {
    std::vector<uint32_t> laps(file->segments());
    for (uint64_t i = 0; i < kStubs; ++i) {
      if (stubs_->versions[i] == 0) continue;
      const TierPlace& place = stubs_->places[i];
      laps[(place.position - kTierBlockBytes) / kSomeSegmentBytes] = place.lap;
    }
    return {.file = file,
            .tier = file->tier(),
            .segment_bytes = file->segment_bytes(),
            .segments = file->segments(),
            .laps = laps};
  }
  // Writes until it is killed.
  [[noreturn]] void WriteForEver() const {
    const auto file = TierFile::Open(Options());
    if (!file.ok() || !(*file)->kept()) _exit(1);
    TierCircle circle(CircleOf(file->get()));
    KilledItems items(stubs_);
    TierWriter writer(&circle, &items);
    while (writer.Poll(/*now_ns=*/1) == TierWriter::Did::kWorked) {
    }
    _exit(2);
  }
  // Returns how many stubs there are. Each must lead to its value.
  uint64_t ReadAll() const {
    const auto file = TierFile::Open(Options());
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) return 0;
    TierCircle circle(CircleOf(file->get()));
    uint64_t stubs = 0;
    for (uint64_t i = 0; i < kStubs; ++i) {
      const uint64_t version = stubs_->versions[i];
      if (version == 0) continue;
      ++stubs;
      const auto value = ReadFrom(&circle, stubs_->places[i], SomeKey(i));
      EXPECT_TRUE(value.ok() && *value == SomeValue(version)) << value.status();
    }
    return stubs;
  }

  test_support::TemporaryDirectory directory_;
  SharedStubs* stubs_ = nullptr;
};

TEST_F(TierKillTest, LosesNothingThatHadBecomeAStub) {
  std::mt19937_64 random(test_support::TestSeed());
  for (int i = 0; i < kKills && !HasFailure(); ++i) {
    const uint64_t until = stubs_->version + 1 + random() % 200;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) WriteForEver();
    int status = 0;
    while (stubs_->version < until && waitpid(child, &status, WNOHANG) == 0) usleep(random() % 500);
    if (status == 0) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself: " << WEXITSTATUS(status);
    ReadAll();
  }
  EXPECT_GT(ReadAll(), 10u);
}

}  // namespace
}  // namespace gannet
