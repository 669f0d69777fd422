// Journal and snapshot of a member, and when a run is whole. With no items yet, an empty snapshot
// says so. The proof notes the epoch last: once it is there, this run may be the one to begin
// with.

#include "server/main/disk/member_log.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"
#include "server/log/changes/update_lane_inline.h"
#include "server/main/disk/data_directory.h"
#include "server/main/disk/snapshot.h"

namespace gannet {
namespace {

constexpr char kNoteName[] = "applied";
constexpr char kNewNoteName[] = "applied.new";
constexpr size_t kNoteBytesMax = 64;
// With sync always, writes wait for the disk, however long it takes.
constexpr int64_t kNeverNs = std::numeric_limits<int64_t>::max() / 2;

std::string NoteText(uint64_t history, uint64_t lsn) {
  return absl::StrCat(absl::Hex(history, absl::kZeroPad16), " ", lsn, "\n");
}

struct NoteOfRun {
  uint64_t history = 0;
  uint64_t lsn = 0;
};
// Returns zeros if there is none that can be read. It is for people only.
NoteOfRun ReadNote(Files* files) {
  const auto file = files->Open(kNoteName);
  if (!file.ok()) return {};
  std::string text(kNoteBytesMax, '\0');
  const auto bytes = (*file)->ReadAt(0, std::as_writable_bytes(std::span(text)));
  if (!bytes.ok()) return {};
  text.resize(*bytes);
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \n"));
  NoteOfRun note;
  const bool read = words.size() == 3 && absl::SimpleHexAtoi(words[0], &note.history) &&
                    absl::SimpleAtoi(words[1], &note.lsn);
  return read ? note : NoteOfRun{};
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemberLog>> MemberLog::Open(const Options& options) {
  std::unique_ptr<MemberLog> log(new MemberLog(options));
  if (options.former != nullptr) {
    const NoteOfRun note = ReadNote(options.former);
    log->former_history_ = note.history;
    log->former_lsn_ = note.lsn;
    log->former_proof_ = ReadRunProof(options.former);
  }
  GANNET_ASSIGN_OR_RETURN(log->log_,
                          DiskLog::Open({.files = options.own,
                                         .store = options.store,
                                         .sync = options.sync,
                                         .sync_interval_ns = options.sync_interval_ns,
                                         .segment_bytes = options.segment_bytes,
                                         .clock = options.clock,
                                         .wall = options.wall,
                                         .new_number = options.new_number,
                                         .waiting_bytes_max = kBytesMax,
                                         .unsynced_ns_max = log->always() ? kNeverNs : 0,
                                         .refuses_for_age = false,  // behind() sees to that
                                         .owner = log.get()},
                                        /*now=*/{}));
  return log;
}

bool MemberLog::Take(const Change& change, ChangePlace* place) {
  if (!begun()) return true;
  if (given_up()) {
    log_->CountRefused();
    return true;
  }
  end_.store(place->end, std::memory_order_release);
  ChangePlace own = {.end = place->end - offset_};
  if (log_->Take(change, &own)) {
    place->room = own.room;
  } else {
    GiveUp(log_->Taking());
  }
  return true;
}

void MemberLog::Fill(const Change& change, const ChangePlace& place) {
  log_->Fill(change, {.end = place.end - offset_, .room = place.room});
}

void MemberLog::EndUpdates(UpdateLane* lane) {
  if (!begun() || lane->empty()) return;
  bool counted = false;  // the first one, by GiveUp
  if (!given_up() && log_->takes() != Takes::kNow) {
    GiveUp(log_->Taking());
    counted = true;
  }
  if (given_up()) {
    for ([[maybe_unused]] const PlacedUpdate& update : lane->updates()) {
      if (!std::exchange(counted, false)) log_->CountRefused();
    }
    return;
  }
  end_.store(lane->position(), std::memory_order_release);
  log_->TakeUpdates(lane, offset_);
}

uint64_t MemberLog::safe() const {
  if (!begun_.load(std::memory_order_acquire)) return std::numeric_limits<uint64_t>::max();
  return log_->safe() + offset_;
}

bool MemberLog::behind() {
  if (!begun() || given_up()) return false;
  if (const absl::Status taking = log_->Taking(); !taking.ok()) {
    GiveUp(taking);
    return false;
  }
  if (!log_->IsBehind(kBehindBytes)) {
    behind_since_ns_.store(0, std::memory_order_relaxed);
    return false;
  }
  if (always()) return true;
  const int64_t now = options_.clock();
  int64_t since = 0;
  behind_since_ns_.compare_exchange_strong(since, now, std::memory_order_relaxed);
  if (since == 0 || now - since < kPatienceNs) return true;
  GiveUp(absl::DeadlineExceededError(
      absl::StrCat("it has been behind for ", kPatienceNs / kNsPerSecond, " s")));
  return false;
}

void MemberLog::GiveUp(const absl::Status& why) {
  log_->CountRefused();
  if (given_up_.exchange(true)) return;
  const char* const goes_on =
      always() ? "and takes no write as primary, as --sync=always wants" : "and goes on without it";
  LOG(ERROR) << "gives up its disk, " << goes_on << ": " << why.message()
             << ". The group's items are in the memory of its members. Mend the disk, and start "
                "this server again";
}

std::optional<KeptRun> MemberLog::Former(uint64_t history) const {
  if (!former_proof_) return std::nullopt;
  if (former_proof_->claim.process != 0 && former_proof_->claim.history == history) {
    return former_proof_->claim;  // it has all of the new history, which begins with it
  }
  if (former_proof_->kept.history != history) return std::nullopt;
  KeptRun kept = former_proof_->kept;
  kept.lsn = FormerLsn(history);
  return kept;
}

absl::Status MemberLog::Claim(uint64_t history, uint64_t next_history, uint64_t epoch) {
  std::optional<KeptRun> kept = Former(history);
  if (!kept) return absl::FailedPreconditionError("there is no run of this history");
  const auto take = [](const Change&) { return absl::OkStatus(); };
  GANNET_RETURN_IF_ERROR(ReadDirectory(options_.former, take).status());
  kept->lsn = 0;
  const RunProof proof = {.kept = *kept,
                          .claim = {.process = options_.incarnation,
                                    .history = next_history,
                                    .always = kept->always,
                                    .opened = kept->always ? epoch : 0}};
  GANNET_RETURN_IF_ERROR(WriteRunProof(options_.former, proof));
  former_proof_ = proof;
  return absl::OkStatus();
}

absl::Status MemberLog::Restore(absl::FunctionRef<absl::Status(const Change&)> make) const {
  GANNET_ASSIGN_OR_RETURN(const DirectoryRead read, ReadDirectory(options_.former, make));
  LOG(INFO) << "restored from " << options_.former->path() << ": " << read.snapshot_items
            << " items of a snapshot, then " << read.journal_changes << " changes of the journal";
  return absl::OkStatus();
}

// The disk's thread touches no file before there is a change.
absl::Status MemberLog::WriteEmptySnapshot() {
  GANNET_ASSIGN_OR_RETURN(const uint64_t number, ReadNumberOfDirectory(options_.own));
  GANNET_ASSIGN_OR_RETURN(const auto snapshot, SnapshotWriter::Create(options_.own, number, 0));
  GANNET_RETURN_IF_ERROR(snapshot->Complete());
  return snapshot->Name();
}

// With no items yet, the journal alone has everything. An empty snapshot says so.
void MemberLog::Begin(uint64_t history, uint64_t restored) {
  {
    MutexLock lock(mutex_);
    proof_ = {.process = options_.incarnation,
              .history = history,
              .always = always(),
              .opened = always() ? restored : 0};
  }
  StatsReply stats{};
  options_.store->FillStats(&stats);
  if (stats.items == 0 && options_.former == nullptr) {
    if (const absl::Status status = WriteEmptySnapshot(); !status.ok()) return GiveUp(status);
    named_.store(true, std::memory_order_release);
  } else {
    log_->snapshots().Ask();
  }
  offset_ = options_.changes->end() - log_->appended();
  end_.store(options_.changes->end(), std::memory_order_relaxed);
  begun_.store(true, std::memory_order_release);
  LOG(INFO) << "keeps the group's items in " << options_.own->path();
}

// What a backup applies is in the store when it is in the journal, or its key is locked until it
// is. A primary's writes are in the store when they are published. Who finds the end of a client's
// write here finds lead_at_, too, as it was set before clients were taken.
std::optional<uint64_t> MemberLog::SnapshotAt() const {
  if (!begun_.load(std::memory_order_acquire) || given_up()) return std::nullopt;
  const uint64_t end = end_.load(std::memory_order_acquire);
  const uint64_t lead_at = lead_at_.load(std::memory_order_relaxed);
  if (lead_at == kNoLead) return end - offset_;
  return std::min(end, std::max(lead_at, options_.writes->published_position())) - offset_;
}

void MemberLog::Note(uint64_t history, uint64_t lsn) {
  if (!begun() || given_up()) return;
  MutexLock lock(mutex_);
  if (noted_.history == history && noted_.lsn == lsn) return;
  noted_ = {.history = history, .lsn = lsn, .position = log_->appended(), .written = false};
}

bool MemberLog::MayOpen(uint64_t epoch) {
  if (!always() || given_up()) return true;
  MutexLock lock(mutex_);
  if (open_epoch_ != epoch) {
    open_epoch_ = epoch;
    open_position_ = log_->appended();
  }
  return whole() && log_->safe() >= open_position_ && written_proof_.opened == epoch;
}

void MemberLog::OnSnapshot() {
  if (given_up() || !WriteProof()) return;
  named_.store(true, std::memory_order_release);
  options_.owner->OnWhole();
}

void MemberLog::OnPoll() {
  if (!begun_.load(std::memory_order_acquire) || given_up() || log_->failed()) return;
  if (WriteProof()) WriteNote();
}

// The epoch is noted last: once it is there, the run may be the one to begin with.
bool MemberLog::WriteProof() {
  KeptRun proof;
  {
    MutexLock lock(mutex_);
    if (open_epoch_ != 0 && whole() && log_->safe() >= open_position_) {
      proof_.opened = open_epoch_;
    }
    if (written_proof_ == proof_) return true;
    proof = proof_;
  }
  if (const absl::Status status = WriteRunProof(options_.own, {.kept = proof, .claim = {}});
      !status.ok()) {
    GiveUp(status);
    return false;
  }
  {
    MutexLock lock(mutex_);
    written_proof_ = proof;
  }
  proven_.store(true, std::memory_order_release);
  return true;
}

void MemberLog::WriteNote() {
  Noted noted;
  {
    MutexLock lock(mutex_);
    const bool none = options_.sync == Journal::Sync::kNone;
    const uint64_t kept = none ? log_->written() : log_->safe();
    if (noted_.written || kept < noted_.position) return;
    noted_.written = true;
    noted = noted_;
  }
  const auto write = [&]() -> absl::Status {
    options_.own->Remove(kNewNoteName).IgnoreError();
    GANNET_ASSIGN_OR_RETURN(const auto file, options_.own->Create(kNewNoteName));
    const std::string text = NoteText(noted.history, noted.lsn);
    GANNET_RETURN_IF_ERROR(file->WriteAt(0, std::as_bytes(std::span(text))));
    return options_.own->Rename(kNewNoteName, kNoteName);
  };
  if (const absl::Status status = write(); !status.ok()) {
    LOG(WARNING) << "cannot note what was applied: " << status.message();
  }
}

}  // namespace gannet
