#include "tests/server/replica/simulated_group.h"

#include <algorithm>
#include <utility>

namespace gannet {
namespace {

constexpr size_t kRingBytes = 2 * kRingRecordBytesMax;
constexpr int64_t kMs = 1'000'000;
constexpr uint64_t kStream = 5;

std::span<std::byte> BytesOf(std::vector<uint64_t>* words) {
  return std::as_writable_bytes(std::span(*words));
}

}  // namespace

SimulatedGroup::SimulatedGroup(uint64_t seed)
    : random_(seed),
      ring_(kRingBytes / 8),
      writer_(BytesOf(&ring_), kStream, 0),
      lease_(times_),
      commit_(0) {
  for (int64_t& rate : rates_) rate = static_cast<int64_t>(Below(3)) - 1;
  for (int i = 0; i < kBackups; ++i) {
    Backup& backup = backups_[i];
    backup.ring.resize(kRingBytes / 8);
    backup.reader.emplace(BytesOf(&backup.ring),
                          RingReader::Begin{.stream_id = kStream, .lsn = 0, .position = 0});
    backup.watch.emplace(times_, Clock(i + 1));
    backup.link = writer_.AddLink();
    lease_.Count(Name(i), Clock(0));
    commit_.Count(Name(i), 0);
  }
}

int64_t SimulatedGroup::Delay() {
  return static_cast<int64_t>(Below(OneIn(20) ? 900 * kMs : 2 * kMs));
}

std::string SimulatedGroup::Run() {
  int64_t end = 10'000 * kMs;
  while (wrong_.empty() && now_ < end) {
    now_ += static_cast<int64_t>(Below(4 * kMs));
    while (!events_.empty() && events_.begin()->first <= now_) {
      const std::function<void()> what = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      what();
    }
    for (int i = 0; i < kBackups; ++i) {
      if (OneIn(600)) cut_[i] = !cut_[i];
      if (OneIn(2'000)) backups_[i].stopped_until = now_ + Delay();
      if (now_ >= backups_[i].stopped_until) BackupTurn(i);
    }
    if (OneIn(600)) stopped_until_ = now_ + static_cast<int64_t>(Below(3'000 * kMs));
    if (now_ >= stopped_until_ && !ended_) PrimaryTurn();
    Check();
    // The former primary goes on for a while, with all that it had begun.
    if (successor_ >= 0) end = std::min(end, taken_over_at_ + 3'000 * kMs);
  }
  tallies_.committed = committed_;
  return wrong_;
}

void SimulatedGroup::PrimaryTurn() {
  if (!counts_next_) {
    for (const auto& message : std::exchange(inbox_, {})) message();
    if (OneIn(100)) {
      counts_next_ = true;
      stopped_until_ = now_ + static_cast<int64_t>(Below(2'000 * kMs));
      return;
    }
  }
  counts_next_ = false;
  committed_ = commit_.Advance(writer_.end().lsn, lease_, Clock(0));
  Append();
  Ship();
  if (now_ >= beacon_at_ && lease_.MaySend(Clock(0))) SendBeacons();
  Remove();
}

void SimulatedGroup::SendBeacons() {
  beacon_at_ = now_ + times_.beacon_ns();
  const uint64_t sequence = lease_.OnSend(Clock(0));
  for (int i = 0; i < kBackups; ++i) {
    if (cut_[i] || !backups_[i].linked || OneIn(30)) continue;
    At(now_ + Delay(), [this, i, sequence, committed = committed_] {
      Backup& backup = backups_[i];
      if (!backup.linked || now_ < backup.stopped_until) return;
      if (!backup.watch->OnBeacon(Clock(i + 1))) return;
      backup.committed = std::max(backup.committed, committed);
      const uint64_t consumed = backup.reader->consumed();
      if (cut_[i] || OneIn(30)) return;
      At(now_ + Delay(), [this, i, sequence, consumed] {
        inbox_.push_back([this, i, sequence, consumed] {
          if (!lease_.OnAnswer(Name(i), sequence, Clock(0))) Wrong("an answer to no beacon");
          // An older answer may come later.
          if (backups_[i].linked) writer_.OnConsumed(backups_[i].link, consumed);
        });
      });
    });
  }
}

void SimulatedGroup::Append() {
  for (uint64_t n = Below(4); n > 0; --n) {
    const std::string key = std::to_string(appended_);
    const RingRecord record = RingRecord::Of({.version = 1, .key = key, .value = "value"});
    if (!writer_.HasRoomFor(record.bytes())) return;
    writer_.Append(record, committed_);
    ++appended_;
  }
}

void SimulatedGroup::Ship() {
  for (int i = 0; i < kBackups; ++i) {
    Backup& backup = backups_[i];
    if (!backup.linked || backup.tail) continue;
    const RingWriter::Shipment shipment = writer_.Ship(backup.link);
    if (shipment[0].bytes == 0) continue;
    // In order, as those of one queue pair are.
    const int64_t lands = std::max(now_ + (OneIn(10) ? Delay() : 0), backup.lands_at);
    backup.lands_at = lands;
    At(lands, [this, i, shipment] {
      Backup& to = backups_[i];
      if (to.tail) {
        ++tallies_.late_copies;
      } else {
        for (const RingWriter::Chunk& chunk : shipment) {
          std::ranges::copy(BytesOf(&ring_).subspan(chunk.offset, chunk.bytes),
                            BytesOf(&to.ring).subspan(chunk.offset).begin());
        }
      }
      inbox_.push_back([this, i] {
        if (!backups_[i].linked) return;
        writer_.OnCompleted(backups_[i].link);
        commit_.OnCompleted(Name(i), writer_.completed_lsn(backups_[i].link));
      });
    });
  }
}

void SimulatedGroup::Remove() {
  if (removing_) return;
  for (const uint64_t name : lease_.Silent(Clock(0))) {
    const int i = static_cast<int>(name - Name(0));
    removing_ = true;
    At(now_ + Delay(), [this, i, name, revision = known_revision_] {
      const bool won = revision == revision_;
      if (won) {
        ++revision_;
        backups_[i].in_sync = false;
      }
      At(now_ + Delay(), [this, i, name, won] {
        inbox_.push_back([this, i, name, won] {
          removing_ = false;
          if (!won) return void(ended_ = true);
          ++known_revision_;
          ++tallies_.removals;
          lease_.Uncount(name);
          commit_.Uncount(name);
          backups_[i].linked = false;
          writer_.RemoveLink(backups_[i].link);
        });
      });
    });
    return;
  }
}

void SimulatedGroup::BackupTurn(int i) {
  Backup& backup = backups_[i];
  if (!backup.tail) {
    backup.reader->Scan();
    backup.committed = std::max(backup.committed, backup.reader->committed());
    Apply(&backup);
    if (!backup.watch->IsOver(Clock(i + 1), static_cast<uint32_t>(i))) return;
    backup.watch->Fence();
    backup.tail = backup.reader->Seal();
  }
  if (!backup.sent_takeover && backup.in_sync && successor_ < 0) {
    backup.sent_takeover = true;
    At(now_ + Delay(), [this, i, revision = revision_] {
      backups_[i].sent_takeover = false;  // if it lost, it reads again
      if (revision != revision_) return;
      ++revision_;
      TakeOver(i);
    });
  }
}

void SimulatedGroup::Apply(Backup* backup) {
  const bool whole = backup->reader->Take(
      backup->committed, [&](const RingRecord& record, uint64_t, uint64_t end) {
        if (record.change.key != std::to_string(backup->next_record++))
          Wrong("a record is missing");
        if (end > committed_) Wrong("a backup applied what is not committed");
        ++tallies_.applied_records;
      });
  if (!whole) Wrong("a record changed after it was found");
}

void SimulatedGroup::TakeOver(int i) {
  ++tallies_.takeovers;
  successor_ = i;
  taken_over_at_ = now_;
  Backup& backup = backups_[i];
  backup.tail->ForEach([&](const RingRecord& record, uint64_t, uint64_t) {
    if (record.change.key != std::to_string(backup.next_record++)) Wrong("a record is missing");
  });
}

void SimulatedGroup::Check() {
  for (const Backup& backup : backups_) {
    if (backup.in_sync && backup.tail && !ended_ && lease_.Valid(Clock(0))) {
      Wrong("the primary's lease is valid although a backup in sync has fenced it");
    }
  }
  if (successor_ >= 0 && committed_ > backups_[successor_].tail->end()) {
    Wrong("what was committed is lost");
  }
}

}  // namespace gannet
