// kvserver --tier: a working set several times as large as the memory, most of it on the disk.

#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "softverbs/tests/support/sanitizer.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/environment_variable.h"
#include "tests/support/rest.h"
#include "tests/support/run_program.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kKeys = 1500;

std::string KeyOf(int i) { return absl::StrCat("key", i); }

// 4 to 64 KiB, of which every byte says whose it is.
std::string ValueOf(int i) {
  const std::string word = absl::StrCat(KeyOf(i), ".");
  const size_t bytes = (4 << 10) + i * 7919 % (60 << 10);
  std::string value;
  while (value.size() < bytes) value += word;
  value.resize(bytes);
  return value;
}

class TierTest : public ::testing::Test {
 protected:
  std::vector<std::string> Flags(std::vector<std::string> more = {}) const {
    std::vector<std::string> flags = {"--memory=16M", "--on_full=evict", "--workers=2",
                                      "--tier=" + directory_.path(), "--tier_bytes=1G"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  static std::unique_ptr<Client> Connect(const ServerProcess& server) {
    auto client = Client::Connect({server.endpoint()}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  static ServerStats StatsOf(Client& client) {
    const auto stats = client.Stats().at(0).stats;
    EXPECT_TRUE(stats.ok()) << stats.status();
    return stats.ok() ? *stats : ServerStats{};
  }
  static void PutAll(Client& client) {
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(client.Put(KeyOf(i), ValueOf(i)).ok());
  }
  // Returns how many keys are there. Whatever is there is right.
  static int GetAll(Client& client) {
    int hits = 0;
    for (int i = 0; i < kKeys; ++i) {
      const auto got = client.Get(KeyOf(i));
      EXPECT_TRUE(got.ok()) << got.status();
      if (!got.ok() || !got->has_value()) continue;
      EXPECT_TRUE((*got)->data == ValueOf(i)) << i;
      ++hits;
    }
    return hits;
  }

  const test_support::TemporaryDirectory directory_;
};

TEST_F(TierTest, HasWhatMemoryHasNoRoomFor) {
  ServerProcess server(Flags());
  const auto client = Connect(server);
  PutAll(*client);
  const ServerStats before = StatsOf(*client);
  EXPECT_EQ(before.tier_disk, 1u) << "the disk works";
  EXPECT_GT(before.items_on_disk, 0u);
  // Whether a key is there needs no disk.
  int there = 0;
  for (int i = 0; i < kKeys; ++i) there += client->Exists(KeyOf(i)).value_or(false);
  const uint64_t rpcs_before = StatsOf(*client).rpcs;
  EXPECT_EQ(StatsOf(*client).tier_reads, 0u);
  const int hits = GetAll(*client);
  const ServerStats stats = StatsOf(*client);
  std::cout << hits << " of " << kKeys << " keys are there, " << stats.tier_reads
            << " of them on the disk; " << stats.items_evicted
            << " were evicted before they were written, " << stats.tier_evicted
            << " went from the disk" << std::endl;
  EXPECT_LE(hits, there);
  EXPECT_GE(stats.tier_reads, before.items_on_disk);
  EXPECT_EQ(stats.tier_reads_failed, 0u);
  // The client soon asks with enough room for values as long as these, so most take one request.
  EXPECT_LT(stats.rpcs - rpcs_before, stats.tier_reads + stats.tier_reads / 4);
  // No disk reads within a tenth of a microsecond, and none of these takes a minute.
  EXPECT_GT(stats.tier_read_us, stats.tier_reads / 10);
  EXPECT_LT(stats.tier_read_us, stats.tier_reads * 60'000'000);
  EXPECT_GE(stats.tier_stub_bytes, stats.items_on_disk * 64);
  EXPECT_LE(stats.tier_stub_bytes, stats.tier_stub_budget);
  // A quarter of the memory, of which the index has a part.
  EXPECT_GE(stats.tier_stub_budget, stats.heap_total / 4);
  EXPECT_LE(stats.tier_stub_budget, uint64_t{16} << 18);
  // A third of the set has room in memory.
  EXPECT_GT(hits, kKeys / 2);
}

// 128 at once are more than may wait for the disk.
TEST_F(TierTest, ManyKeysAtOnceAreFoundAsOneByOne) {
  ServerProcess server(Flags());
  const auto client = Connect(server);
  PutAll(*client);
  const uint64_t on_disk = StatsOf(*client).items_on_disk;
  ASSERT_GT(on_disk, 0u);
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back(KeyOf(i));
  int there = 0;
  for (const auto& exists : client->MultiExists(keys)) {
    ASSERT_TRUE(exists.ok()) << exists.status();
    there += *exists;
  }
  const ServerStats before = StatsOf(*client);
  EXPECT_EQ(before.tier_reads, 0u);
  int hits = 0;
  for (int first = 0; first < kKeys; first += 128) {
    const std::span some = std::span(keys).subspan(first, std::min(128, kKeys - first));
    const auto values = client->MultiGet(some);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_TRUE(values[i].ok()) << values[i].status();
      if (!values[i]->has_value()) continue;
      EXPECT_TRUE((*values[i])->data == ValueOf(first + static_cast<int>(i)));
      ++hits;
    }
  }
  EXPECT_LE(hits, there);
  const ServerStats stats = StatsOf(*client);
  EXPECT_GE(stats.tier_reads, on_disk);
  // The client sends no more than the server lets wait, so none is refused.
  EXPECT_LT(stats.rpcs - before.rpcs, stats.tier_reads + stats.tier_reads / 4);
}

TEST_F(TierTest, IsShownByKvcli) {
  ServerProcess server(Flags());
  const auto client = Connect(server);
  PutAll(*client);
  ASSERT_GT(StatsOf(*client).items_on_disk, 0u);
  const auto kvcli = [&server](std::vector<std::string> words) {
    std::vector<std::string> argv = {test_support::ProgramPath("kvcli"),
                                     "--server=" + server.endpoint(), "--device=soft", "--json"};
    argv.insert(argv.end(), words.begin(), words.end());
    const test_support::Finished done = test_support::RunProgram(argv);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out;
  };
  EXPECT_THAT(kvcli({"info"}), AllOf(HasSubstr("\"tier_state\":\"works\""),
                                     HasSubstr("\"tier_bytes\":1073741824,")));
  EXPECT_THAT(kvcli({"top", "--count=1"}), HasSubstr("\"tier\":{\"state\":\"works\""));
  EXPECT_THAT(kvcli({"memory"}), HasSubstr("\"tiers\":[{\"state\":\"works\""));
  const std::vector<std::string> doctor = {test_support::ProgramPath("kvcli"),
                                           "--server=" + server.endpoint(), "--device=soft",
                                           "--json", "doctor"};
  EXPECT_THAT(test_support::RunProgram(doctor).out,
              AllOf(HasSubstr("\"check\":\"tier\""), HasSubstr("it works: ")));
  // The walk goes by what is on the disk.
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(client->Put("hot", "value").ok());
  EXPECT_THAT(kvcli({"hotkeys", "--count=10"}), HasSubstr("\"key\":\"hot\""));
  EXPECT_EQ(StatsOf(*client).tier_reads, 0u);
}

TEST_F(TierTest, ChangesOfWhatIsOnTheDiskNeedNoDisk) {
  ServerProcess server(Flags());
  const auto client = Connect(server);
  PutAll(*client);
  ASSERT_GT(StatsOf(*client).items_on_disk, 0u);
  for (int i = 0; i < kKeys; i += 3) EXPECT_TRUE(client->Delete(KeyOf(i)).ok());
  for (int i = 1; i < kKeys; i += 3) EXPECT_TRUE(client->Put(KeyOf(i), ValueOf(i + 1)).ok());
  EXPECT_EQ(StatsOf(*client).tier_reads, 0u);
  for (int i = 0; i < kKeys; ++i) {
    const auto got = client->Get(KeyOf(i));
    ASSERT_TRUE(got.ok()) << got.status();
    if (!got->has_value()) continue;
    EXPECT_NE(i % 3, 0) << "a deleted value came back";
    EXPECT_TRUE((*got)->data == ValueOf(i % 3 == 1 ? i + 1 : i)) << i;
  }
}

// A killed server leaves stubs in its memory file. The next one finds their values.
TEST_F(TierTest, OutlivesAKillWithAMemoryFile) {
  const std::string memory = absl::StrCat("/dev/shm/gannet-tier-test-", getpid());
  {
    ServerProcess server(Flags({"--memory_file=" + memory}));
    auto client = Connect(server);
    PutAll(*client);
    const uint64_t on_disk = StatsOf(*client).items_on_disk;
    ASSERT_GT(on_disk, 0u);
    server.Kill();
    // Also before an upgrade, by the flags of the server.
    const auto upgrade_check = [&](const std::string& path, int exit_code) {
      std::vector<std::string> argv =
          Flags({"--memory_file=" + memory, "--device=soft", "--json", "--upgrade_check=" + path});
      argv.insert(argv.begin(), test_support::ProgramPath("kvserver"));
      const test_support::Finished check = test_support::RunProgram(argv);
      EXPECT_EQ(check.exit_code, exit_code) << check.err;
      return check.out;
    };
    EXPECT_THAT(upgrade_check(memory, 0),
                AllOf(HasSubstr("\"takes_over\":true"),
                      HasSubstr("{\"name\":\"memory file\",\"version\":3,\"takes\":3}")));
    EXPECT_THAT(upgrade_check(directory_.path(), 0),
                AllOf(HasSubstr("\"takes_over\":true"),
                      HasSubstr("{\"name\":\"tier\",\"version\":1,\"takes\":1}")));
    const test_support::TemporaryDirectory of_another_version;
    std::ofstream(of_another_version.path() + "/tier") << std::string("GNETTIER\x02\0\0\0", 12);
    EXPECT_THAT(upgrade_check(of_another_version.path(), 1),
                HasSubstr("tier has version 2, and this kvserver takes version 1"));
    server.Restart();
    client = Connect(server);
    EXPECT_GE(StatsOf(*client).items_on_disk, on_disk);
    EXPECT_GT(GetAll(*client), 0);
    const ServerStats stats = StatsOf(*client);
    EXPECT_GE(stats.tier_reads, on_disk);
    EXPECT_EQ(stats.tier_reads_failed, 0u);
  }
  std::filesystem::remove(memory);
}

TEST_F(TierTest, AppendsToWhatIsOnTheDisk) {
  ServerProcess server(Flags());
  const auto client = Connect(server);
  PutAll(*client);
  ASSERT_GT(StatsOf(*client).items_on_disk, 0u);
  // The first ones were put first, so they went first.
  int there = 0;
  for (int i = 0; i < 100; ++i) {
    if (!client->Exists(KeyOf(i)).value_or(false)) continue;
    ASSERT_TRUE(client->Append(KeyOf(i), "+").ok()) << i;
    const auto got = client->Get(KeyOf(i));
    ASSERT_TRUE(got.ok() && got->has_value()) << i;
    // A value that was not written in time may go at any moment, and then this made a new item.
    const bool whole = (*got)->data == ValueOf(i) + "+";
    EXPECT_TRUE(whole || (*got)->data == "+") << i;
    there += whole;
  }
  EXPECT_GT(there, 0);
  EXPECT_GT(StatsOf(*client).tier_reads, 0u);
}

// kvserver --check=DIR --tier=DIR says what a start would say, and starts nothing.
TEST_F(TierTest, IsCheckedBeforeAStart) {
  const auto check = [this](const std::vector<std::string>& more) {
    std::vector<std::string> argv = {test_support::ProgramPath("kvserver"), "--device=soft",
                                     "--check=" + directory_.path()};
    argv.insert(argv.end(), more.begin(), more.end());
    return test_support::RunProgram(argv);
  };
  const test_support::Finished fine = check(Flags({"--json"}));
  EXPECT_EQ(fine.exit_code, 0) << fine.err;
  EXPECT_THAT(fine.out, AllOf(HasSubstr("\"tier_bytes\":1073741824,"), HasSubstr("\"o_direct\":"),
                              HasSubstr("\"found_again\":0")));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  const test_support::Finished large = check(Flags({"--tier_bytes=1000T"}));
  EXPECT_EQ(large.exit_code, 1);
  EXPECT_THAT(large.err, AllOf(HasSubstr("--tier_bytes="), HasSubstr("free")));
  const test_support::Finished unfit = check(Flags({"--on_full=reject"}));
  EXPECT_EQ(unfit.exit_code, 2);
  EXPECT_THAT(unfit.err, HasSubstr("--tier needs --on_full=evict"));
}

// What servers say at /readyz. REQUIRES: --http.
std::string Readyz(ServerProcess& server) {
  EXPECT_TRUE(server.process().AwaitStderr("shows itself at "));
  const std::string url = ShownAt(server.process().Stderr());
  return test_support::RunProgram({"curl", "--silent", "--fail", url + "/readyz"}).out;
}

// For the file system as for a quota or a limit of the process: there is no space, and then there
// is. The memory serves meanwhile.
TEST_F(TierTest, TellsOfADiskThatIsFullUntilItHasRoom) {
  ServerProcess server(Flags({"--http=127.0.0.1:0"}));
  const auto client = Connect(server);
  EXPECT_EQ(Readyz(server), "ready\n");
  const auto allow = [&server](rlim_t bytes) {
    const rlimit limit{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    ASSERT_EQ(prlimit(server.process().pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  };
  // Puts until the disk is in this state: it writes when it can.
  const auto put_until = [&client](uint64_t disk) {
    for (int i = 0; i < 100; ++i) {
      PutAll(*client);
      if (StatsOf(*client).tier_disk == disk) return true;
    }
    return false;
  };
  allow(4096);
  ASSERT_TRUE(put_until(3));
  EXPECT_EQ(Readyz(server),
            "ready, but the tier's disk is full: what should go there is evicted\n");
  EXPECT_GT(StatsOf(*client).items_evicted, 0u);
  EXPECT_GT(GetAll(*client), 0);
  allow(RLIM_INFINITY);
  EXPECT_TRUE(put_until(1));
  EXPECT_EQ(Readyz(server), "ready\n");
  EXPECT_TRUE(server.process().AwaitStderr("the tier's disk is full: "));
  EXPECT_TRUE(server.process().AwaitStderr("the tier's disk works again"));
}

// A disk that does not answer while the test likes.
class TierHeldTest : public TierTest {
 protected:
  static constexpr int kBlocks = 600;  // three times what the memory has room for
  static constexpr size_t kBlockBytes = 64 << 10;
  // What a session of 32 credits may have waiting for the disk.
  static constexpr uintmax_t kWaiting = 16;
  // Shorter than what makes a client try another connection, which gives numbers back, too.
  static constexpr std::chrono::milliseconds kDeadline{4000};

  void SetUp() override {
    if (test_support::kThreadSanitizer || test_support::kAddressSanitizer) {
      GTEST_SKIP() << "the preloaded library is not instrumented";
    }
  }
  // However the test ends, the server's threads go on.
  void TearDown() override { Release(); }

  static std::string Block(int i) {
    const std::string word = absl::StrCat(KeyOf(i), ".");
    std::string value;
    while (value.size() < kBlockBytes) value += word;
    value.resize(kBlockBytes);
    return value;
  }
  static void PutBlocks(Client& client) {
    for (int i = 0; i < kBlocks; ++i) ASSERT_TRUE(client.Put(KeyOf(i), Block(i)).ok());
  }
  // Returns so many of them that are on the disk: their GETs read it.
  static std::vector<int> OnDisk(Client& client, size_t n) {
    std::vector<int> found;
    uint64_t reads = StatsOf(client).tier_reads;
    for (int i = 0; i < kBlocks && found.size() < n; ++i) {
      const auto got = client.Get(KeyOf(i));
      EXPECT_TRUE(got.ok()) << got.status();
      const uint64_t now = StatsOf(client).tier_reads;
      if (now > reads && got.ok() && got->has_value()) found.push_back(i);
      reads = now;
    }
    EXPECT_EQ(found.size(), n) << "too little is on the disk";
    return found;
  }

  void Hold() { std::ofstream{held_}; }
  void Release() { std::filesystem::remove(held_); }
  uintmax_t Waiting() const { return std::filesystem::file_size(held_); }

  const test_support::TemporaryDirectory other_;
  const std::string held_ = other_.path() + "/held";
  const test_support::EnvironmentVariable preload_{
      "LD_PRELOAD", test_support::TestProgramPath("hanging_sync.so")};
  const test_support::EnvironmentVariable when_{"GANNET_HANGING_READ", held_};
};

// They leave the other half of the session's credits to what needs no disk.
TEST_F(TierHeldTest, ManyKeysAtOnceLeaveTheirSessionRoom) {
  ServerProcess server(Flags());
  Options options = PatientOptions();
  options.depth = 256;
  auto connected = Client::Connect({server.endpoint()}, options);
  ASSERT_TRUE(connected.ok()) << connected.status();
  Client& client = **connected;
  PutBlocks(client);
  const std::vector<int> numbers = OnDisk(client, 128);
  std::vector<std::string> keys;
  for (const int i : numbers) keys.push_back(KeyOf(i));
  ASSERT_TRUE(client.Put("short", "value").ok());
  Hold();
  std::thread many([&] {
    const auto values = client.MultiGet(keys);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_TRUE(values[i].ok() && values[i]->has_value()) << values[i].status();
      EXPECT_TRUE((*values[i])->data == Block(numbers[i])) << keys[i];
    }
  });
  while (Waiting() < kWaiting) test_support::Rest();
  // GETs that wait for long give their numbers back, and ask again.
  for (int i = 0; i < 5; ++i) {
    const auto put = client.Put("short", absl::StrCat(i), {}, kDeadline);
    EXPECT_TRUE(put.ok()) << put.status();
    const auto got = client.Get("short");
    EXPECT_TRUE(got.ok() && got->has_value() && (*got)->data == absl::StrCat(i)) << got.status();
  }
  Release();
  many.join();
}

// Clients see a disk that hangs only where they need it.
TEST_F(TierHeldTest, ADiskThatHangsDelaysNothingElse) {
  ServerProcess server(Flags());
  const auto client = Connect(server);
  PutBlocks(*client);
  const std::vector<int> numbers = OnDisk(*client, 4);
  ASSERT_TRUE(client->Put("short", "value").ok());
  Hold();
  for (const int i : numbers) {
    const auto got = client->Get(KeyOf(i), std::chrono::milliseconds(300));
    EXPECT_TRUE(absl::IsDeadlineExceeded(got.status())) << got.status();
    EXPECT_TRUE(client->Exists(KeyOf(i)).value_or(false));
    for (int n = 0; n < 10; ++n) {
      ASSERT_TRUE(client->Put("short", absl::StrCat(n), {}, kDeadline).ok());
      const auto other = client->Get("short", kDeadline);
      ASSERT_TRUE(other.ok() && other->has_value()) << other.status();
    }
  }
  EXPECT_GE(Waiting(), 1u);
  Release();
  for (const int i : numbers) {
    const auto got = client->Get(KeyOf(i));
    ASSERT_TRUE(got.ok() && got->has_value()) << got.status();
    EXPECT_TRUE((*got)->data == Block(i)) << i;
  }
}

TEST_F(TierTest, EndsInOrder) {
  ServerProcess server(Flags());
  const auto client = Connect(server);
  PutAll(*client);
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0);
}

}  // namespace
}  // namespace gannet
