#include "server/main/disk/snapshot.h"

#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/main/disk/data_directory.h"
#include "tests/server/log/journal/simulated_files.h"
#include "tests/support/hex.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kJournal = 0x1122334455667788;

class SnapshotTest : public testing::Test {
 protected:
  // Writes a snapshot of these keys at journal position 0x4000, and returns its name.
  std::string Write(const std::vector<std::string>& keys) {
    auto writer = SnapshotWriter::Create(&files_, kJournal, 0x4000);
    EXPECT_TRUE(writer.ok()) << writer.status();
    uint64_t version = 0;
    for (const std::string& key : keys) {
      (*writer)->Add({.version = ++version, .key = key, .value = "value"});
    }
    EXPECT_TRUE((*writer)->Complete().ok());
    EXPECT_EQ(*files_.List(), std::vector<std::string>{kNewSnapshotName}) << "it has no name yet";
    EXPECT_TRUE((*writer)->Name().ok());
    return SnapshotName(0x4000);
  }
  absl::StatusOr<SnapshotRead> Read(const std::string& name, uint64_t journal_id = kJournal) {
    keys_.clear();
    return ReadSnapshot(&files_, name, journal_id, [this](const Change& item) {
      keys_.emplace_back(item.key);
      return absl::OkStatus();
    });
  }

  SimulatedFiles files_{1};
  std::vector<std::string> keys_;
};

TEST_F(SnapshotTest, GivesBackWhatWasAdded) {
  const std::string name = Write({"a", "b", "c"});
  EXPECT_EQ(name, "snapshot-0000000000004000");
  const auto read = Read(name);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(keys_, ElementsAre("a", "b", "c"));
  EXPECT_EQ(read->position, 0x4000u);
  EXPECT_EQ(read->items, 3u);
}

// docs/durability-formats.md has the same bytes.
TEST_F(SnapshotTest, HasGoldenBytes) {
  const std::string name = Write({});
  const std::vector<std::byte>& bytes = *files_.BytesOf(name);
  ASSERT_EQ(bytes.size(), kSnapshotHeaderBytes + sizeof(SnapshotEnd));
  const std::string hex = test_support::Hex(bytes);
  EXPECT_EQ(hex.substr(0, 64),
            "474e4554534e4150"
            "0100000040000000"
            "8877665544332211"
            "0040000000000000");
  EXPECT_EQ(hex.substr(80, 48), std::string(48, '0'));
  EXPECT_EQ(hex.substr(128, 48),
            "474e455453454e44"
            "0000000000000000"
            "4000000000000000");
}

TEST_F(SnapshotTest, TellsEveryChangedByteAndEveryCut) {
  const std::string name = Write({"a", "b"});
  const std::vector<std::byte> whole = *files_.BytesOf(name);
  // The header's padding proves nothing, and is not read.
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i >= sizeof(SnapshotHeader) && i < kSnapshotHeaderBytes) continue;
    std::vector<std::byte> damaged = whole;
    damaged[i] ^= std::byte{1};
    *files_.BytesOf(name) = damaged;
    EXPECT_TRUE(absl::IsDataLoss(Read(name).status())) << "byte " << i;
  }
  for (size_t n = 0; n < whole.size(); ++n) {
    *files_.BytesOf(name) = {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n)};
    EXPECT_TRUE(absl::IsDataLoss(Read(name).status())) << n << " bytes";
  }
}

TEST_F(SnapshotTest, RefusesAnotherServersSnapshot) {
  const absl::Status status = Read(Write({"a"}), kJournal + 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.message(), HasSubstr("belongs to another server's directory"));
}

TEST_F(SnapshotTest, KnowsItsNames) {
  EXPECT_EQ(PositionOfSnapshot("snapshot-0000000000004000"), 0x4000u);
  for (const char* other : {"snapshot.new", "snapshot-", "snapshot-000000000000400G",
                            "snapshot-000000000000400A", "journal-0000000000004000"}) {
    EXPECT_EQ(PositionOfSnapshot(other), std::nullopt) << other;
  }
}

class DataDirectoryTest : public testing::Test {
 protected:
  absl::StatusOr<uint64_t> Number() { return NumberOfDirectory(&files_, ++random_); }
  SimulatedFiles files_{1};
  uint64_t random_ = 41;
};

TEST_F(DataDirectoryTest, KeepsItsNumberOverAPowerCut) {
  EXPECT_EQ(*Number(), 42u);
  files_.CutPower();
  EXPECT_EQ(*Number(), 42u);
  EXPECT_EQ(*ReadNumberOfDirectory(&files_), 42u);
}

TEST_F(DataDirectoryTest, HasGoldenBytes) {
  ASSERT_EQ(*Number(), 42u);
  const std::vector<std::byte>& bytes = *files_.BytesOf(kDataFileName);
  ASSERT_EQ(bytes.size(), 32u);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), 24);
  EXPECT_EQ(text, std::string("GNETDATA\1\0\0\0\x20\0\0\0\x2a\0\0\0\0\0\0\0", 24));
}

TEST_F(DataDirectoryTest, RefusesADirectoryOfOthersAndADamagedOne) {
  ASSERT_TRUE(files_.Create("photo.jpg").ok());
  EXPECT_THAT(Number().status().message(), HasSubstr("give an empty one"));
  ASSERT_TRUE(files_.Remove("photo.jpg").ok());
  ASSERT_TRUE(Number().ok());
  (*files_.BytesOf(kDataFileName))[17] ^= std::byte{1};
  EXPECT_TRUE(absl::IsDataLoss(Number().status()));
}

}  // namespace
}  // namespace gannet
