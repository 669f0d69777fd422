// The journal on a disk that fails at every single operation, in turn. Whatever happens, what it
// gives back is a beginning of what was appended, and nothing that it confirmed is missing. If only
// the process is killed, nothing that it wrote is missing either. Changes come and are written also
// during syncs.

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/log/journal/journal.h"
#include "server/log/journal/read_journal.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/log/journal/fault_plan.h"
#include "tests/server/log/journal/hooked_files.h"
#include "tests/server/log/journal/simulated_files.h"

namespace gannet {
namespace {

using Fault = SimulatedFiles::Fault;

constexpr uint64_t kJournal = 5;
constexpr int kLives = 3;  // of the server; each ends with a power cut or kill -9

// A change with its own bytes, and where its record ends.
struct Kept {
  Change::Kind kind;
  uint64_t version;
  std::string key;
  std::string value;
  uint64_t end;

  bool Is(const Change& change) const {
    return kind == change.kind && version == change.version && key == change.key &&
           value == change.value;
  }
};

class Disk {
 public:
  explicit Disk(const FaultPlan& plan) : plan_(plan), random_(plan.seed), files_(plan.seed + 1) {
    files_.SetFault(plan.fault, plan.fault_at);
  }

  void Live() {
    for (int life = 0; life < kLives; ++life) {
      if (!Start()) {
        // The fault happened while the server started. It starts again when the power is back.
        CutPower();
        ASSERT_TRUE(Start()) << error_;
      }
      Work();
      journal_.reset();
      // Or only the process is killed. A power cut follows in one of the next lives.
      if (!files_.has_power() || Below(2) == 0) CutPower();
    }
    CutPower();
    ASSERT_TRUE(Start()) << error_;
  }
  uint64_t operations() const { return files_.operations(); }

 private:
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  void CutPower() {
    files_.CutPower();
    written_ = 0;
  }

  // Returns false if a fault prevents it.
  bool Start() {
    size_t seen = 0;
    bool right = true;
    const auto end = ReadJournal({.files = &files_, .journal_id = kJournal}, [&](const Change& c) {
      right = right && seen < kept_.size() && kept_[seen].Is(c);
      ++seen;
      return absl::OkStatus();
    });
    if (!end.ok()) {
      error_ = std::string(end.status().message());
      return false;
    }
    EXPECT_TRUE(right) << "change " << seen << " is not what was appended";
    EXPECT_GE(end->position, confirmed_) << "confirmed, and lost";
    EXPECT_GE(end->position, written_) << "written, and lost without a power cut";
    EXPECT_EQ(end->position, seen == 0 ? 0 : kept_[seen - 1].end);
    kept_.resize(seen);
    auto journal = Journal::Create({.files = &hooked_files_,
                                    .journal_id = kJournal,
                                    .position = end->position,
                                    .sync = plan_.sync,
                                    .sync_interval_ns = 10,
                                    .segment_bytes = 2000});
    if (!journal.ok()) {
      error_ = std::string(journal.status().message());
      return false;
    }
    journal_ = *std::move(journal);
    return true;
  }

  void Work() {
    for (size_t steps = 5 + Below(20); steps > 0; --steps) {
      for (size_t n = Below(4); n > 0; --n) AppendOne();
      now_ns_ += static_cast<int64_t>(Below(10));
      if (Below(4) == 0) journal_->Write();
      journal_->Flush(now_ns_);
      confirmed_ = std::max(confirmed_, journal_->synced());
      written_ = journal_->written();
    }
  }
  // What others do while a sync runs.
  void DuringSync() {
    if (journal_ == nullptr || Below(2) == 0) return;
    for (size_t n = Below(3); n > 0; --n) AppendOne();
    journal_->Write();
    written_ = journal_->written();
  }

  void AppendOne() {
    Kept kept{.kind = Below(4) == 0 ? Change::Kind::kDelete : Change::Kind::kPut,
              .version = ++version_,
              .key = "k" + std::to_string(Below(10)),
              .value = {},
              .end = 0};
    if (kept.kind == Change::Kind::kPut) kept.value.assign(Below(600), static_cast<char>(version_));
    const auto end = journal_->Append(
        {.kind = kept.kind, .version = kept.version, .key = kept.key, .value = kept.value},
        now_ns_);
    if (!end) return;
    kept.end = *end;
    kept_.push_back(std::move(kept));
  }

  const FaultPlan plan_;
  std::mt19937_64 random_;
  SimulatedFiles files_;
  HookedFiles hooked_files_{&files_, [this] { DuringSync(); }};
  std::unique_ptr<Journal> journal_;
  std::vector<Kept> kept_;  // what was appended and may still be there
  uint64_t confirmed_ = 0;
  uint64_t written_ = 0;  // what a kill -9 must leave
  uint64_t version_ = 0;
  int64_t now_ns_ = 0;
  std::string error_;
};

uint64_t OperationsOf(FaultPlan plan) {
  plan.fault = Fault::kNone;
  Disk disk(plan);
  disk.Live();
  return disk.operations();
}

class JournalCrashTest : public testing::TestWithParam<Fault> {};

TEST_P(JournalCrashTest, LosesNothingThatItConfirmedWhicheverOperationFails) {
  constexpr uint64_t kWorkloads = 4;
  const uint64_t first = test_support::TestSeed();
  uint64_t runs = 0;
  for (uint64_t seed = first; seed < first + kWorkloads; ++seed) {
    for (const auto sync :
         {Journal::Sync::kNone, Journal::Sync::kInterval, Journal::Sync::kAlways}) {
      FaultPlan plan{.seed = seed, .sync = sync, .fault = GetParam()};
      const uint64_t operations = OperationsOf(plan);
      for (plan.fault_at = 1; plan.fault_at <= operations; plan.fault_at += kFaultsApart, ++runs) {
        SCOPED_TRACE(Describe(plan));
        Disk(plan).Live();
        if (HasFailure()) return;
      }
    }
  }
  std::cout << runs << " runs" << std::endl;
}

INSTANTIATE_TEST_SUITE_P(Faults, JournalCrashTest, testing::ValuesIn(kFaults),
                         [](const auto& param) { return NameOf(param.param); });

}  // namespace
}  // namespace gannet
