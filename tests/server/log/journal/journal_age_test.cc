// How old what a journal took may be before it is written.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/changes/record.h"
#include "server/log/journal/journal.h"
#include "server/log/journal/read_journal.h"
#include "tests/server/log/journal/simulated_files.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kUnwrittenMax = 5 * kNsPerMs;  // as docs/durability.md says

class JournalAgeTest : public testing::Test {
 protected:
  std::unique_ptr<Journal> Open(Journal::Sync sync) {
    auto journal = Journal::Create({.files = &files_, .sync = sync});
    EXPECT_TRUE(journal.ok()) << journal.status();
    return *std::move(journal);
  }
  std::optional<uint64_t> Append(Journal* journal, const std::string& key,
                                 const std::string& value = "") {
    return journal->Append({.version = 1, .key = key, .value = value}, now_ns_);
  }
  // What a kill -9 would leave.
  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    const auto end = ReadJournal({.files = &files_, .cut = false}, [&](const Change& change) {
      keys.emplace_back(change.key);
      return absl::OkStatus();
    });
    EXPECT_TRUE(end.ok()) << end.status();
    return keys;
  }

  SimulatedFiles files_{1};
  int64_t now_ns_ = kNsPerSecond;
};

// However late the writing thread is, kill -9 takes only what was taken within the limit.
TEST_F(JournalAgeTest, TakesNothingWhileAnEarlierChangeIsUnwrittenForTooLong) {
  for (const auto sync : {Journal::Sync::kNone, Journal::Sync::kInterval, Journal::Sync::kAlways}) {
    files_ = SimulatedFiles(1);
    auto journal = Open(sync);
    ASSERT_TRUE(Append(journal.get(), "a"));
    now_ns_ += kUnwrittenMax;
    ASSERT_TRUE(Append(journal.get(), "b"));
    const uint64_t appended = journal->appended();
    now_ns_ += 1;
    const bool waits = sync == Journal::Sync::kAlways;  // nobody is told before it is on disk
    EXPECT_EQ(journal->Takes(now_ns_), waits);
    EXPECT_EQ(Append(journal.get(), "c").has_value(), waits);
    EXPECT_EQ(journal->appended() == appended, !waits) << "who is refused has no place";
    EXPECT_TRUE(journal->Taking(now_ns_).ok()) << "it is a moment";
    EXPECT_EQ(journal->Taking(now_ns_ + kNsPerSecond).ok(), waits) << "it is none any more";
    EXPECT_FALSE(journal->Write()) << "all is written";
    EXPECT_EQ(journal->unwritten_since_ns(), 0);
    EXPECT_TRUE(Append(journal.get(), "d"));
    EXPECT_EQ(journal->unwritten_since_ns(), now_ns_);
  }
}

// Others are refused meanwhile. So it never waits for who waits for it.
TEST_F(JournalAgeTest, HoldsNobodyBackWhoHasAPlace) {
  auto journal = Open(Journal::Sync::kInterval);
  const std::string large(300'000, 'l');  // more than a chunk, so it has one of its own
  const Change change{.version = 1, .key = "large", .value = large};
  const auto before = Append(journal.get(), "before");
  now_ns_ += kNsPerMs;
  const int64_t reserved_ns = now_ns_;
  const auto place = journal->Reserve(RecordBytes(5, large.size()), now_ns_);
  now_ns_ += kNsPerMs;
  ASSERT_TRUE(before && place && Append(journal.get(), "behind"));
  EXPECT_TRUE(journal->Write()) << "the next try is worth it in a moment";
  EXPECT_EQ(journal->written(), *before);
  EXPECT_EQ(journal->unwritten_since_ns(), reserved_ns) << "the oldest that is left";
  now_ns_ += kNsPerSecond;
  EXPECT_FALSE(Append(journal.get(), "refused"));
  journal->Fill(change, *place);
  EXPECT_FALSE(Append(journal.get(), "refused")) << "it is not written yet";
  for (int i = 0; i < 2; ++i) journal->Write();
  EXPECT_EQ(journal->written(), journal->appended());
  EXPECT_TRUE(Append(journal.get(), "taken"));
  journal->Write();
  EXPECT_THAT(Keys(), ElementsAre("before", "large", "behind", "taken"));
}

TEST_F(JournalAgeTest, ComesBackInAMomentIfMuchCameDuringAWrite) {
  auto journal = Open(Journal::Sync::kInterval);
  const std::string value(100, 'v');
  const auto place = journal->Reserve(RecordBytes(1, value.size()), now_ns_);
  ASSERT_TRUE(place);
  EXPECT_TRUE(journal->Write());  // from now on later changes are of the next write
  ASSERT_TRUE(Append(journal.get(), "much", std::string(300'000, 'v')));
  journal->Fill({.version = 1, .key = "a", .value = value}, *place);
  EXPECT_TRUE(journal->Write());
  EXPECT_FALSE(journal->Write());
  EXPECT_EQ(journal->written(), journal->appended());
}

}  // namespace
}  // namespace gannet
