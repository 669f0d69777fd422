// The queue of changes that are recorded and not published yet. An entry is pushed under the same
// lock under which it gets its place in the stream, so the queue has the order of the stream. An
// undo does not take entries out: it turns those of the key into kNothing, and pushes a deletion
// behind them.

#include "server/writes/waiting_changes.h"

#include <algorithm>
#include <span>
#include <utility>

namespace gannet {
const WaitingChanges::Entry* WaitingChanges::LastOf(KeyHash hash) const {
  if (!keys_.MayWait(hash)) return nullptr;
  WordMutexLock lock(mutex_);
  return FindLast(hash);
}

const WaitingChanges::Entry* WaitingChanges::FindLast(KeyHash hash) const {
  if (queue_.empty()) return nullptr;
  const uint64_t first = queue_.front().ticket;
  // Updates that are made may still be in the queue.
  for (uint64_t ticket = keys_.Last(hash); ticket >= first && !keys_.IsPublished(ticket);) {
    const Entry& entry = queue_[ticket - first];
    if (entry.hash.value() == hash.value() && entry.kind != Kind::kNothing) return &entry;
    ticket = entry.before;
  }
  return nullptr;
}

uint64_t WaitingChanges::Push(Entry entry) {
  Entry& pushed = queue_.PushBack();
  pushed = std::move(entry);
  return Enter(&pushed);
}

void WaitingChanges::LookWhetherCrowded() {
  const uint64_t bytes = queue_.empty() ? 0 : queue_.back().position - published_position();
  crowded_.store(!failed_ && bytes > kCrowdedBytes, std::memory_order_relaxed);
}

std::optional<uint64_t> WaitingChanges::Add(KeyHash hash, const Change& change,
                                            const Pending& pending, Expiry decided_until) {
  const Kind kind = change.kind == Change::Kind::kPut ? Kind::kPut : Kind::kDelete;
  Entry entry{.hash = hash,
              .key = std::string(change.key),
              .kind = kind,
              .version = change.version,
              .pending = pending,
              .decided_until = decided_until,
              .origin = {.session_token = change.session_token,
                         .sequence = change.sequence,
                         .opcode = change.opcode}};
  return Record(change, std::move(entry));
}

bool WaitingChanges::Evict(KeyHash hash, const Change& deletion, uint64_t block_bytes) {
  Entry entry{.hash = hash,
              .key = std::string(deletion.key),
              .kind = Kind::kEvict,
              .version = deletion.version,
              .block_bytes = block_bytes};
  if (!Record(deletion, std::move(entry))) return false;
  Begun(block_bytes);
  return true;
}

std::optional<uint64_t> WaitingChanges::Record(const Change& change, Entry entry) {
  std::optional<ChangePlace> place;
  uint64_t ticket = 0;
  {
    WordMutexLock lock(mutex_);
    place = recorder_->Reserve(change);
    if (!place) return std::nullopt;
    entry.position = place->end;
    ticket = Push(std::move(entry));
  }
  // The entry is found only under the key's lock, and it is not safe before it is filled. So nobody
  // acts on it sooner.
  recorder_->Fill(change, *place);
  return ticket;
}

bool WaitingChanges::MayUpdate(KeyHash hash, std::string_view key) const {
  const Entry* const last = keys_.MayWait(hash) ? FindLast(hash) : nullptr;
  return last == nullptr || (last->kind == Kind::kUpdate && last->Key() == key);
}

bool WaitingChanges::BeginUpdates() {
  mutex_.Lock();
  if (!recorder_->BeginUpdates(&lane_)) {
    mutex_.Unlock();
    return false;
  }
  lane_in_room_ = !lane_.has_memory();
  if (!lane_in_room_) [[likely]]
    return true;
  const std::span<std::byte> memory = room_.Open(UpdateLane::kMemoryMin);
  if (!memory.empty()) {
    lane_.UseMemory(memory.first(std::min(memory.size(), kLaneBytesMax)));
    return true;
  }
  lane_in_room_ = false;
  EndUpdates();
  return false;
}

void WaitingChanges::EndUpdates() {
  if (lane_in_room_ && !lane_.empty()) {
    room_.Take(lane_.bodies().size(), tickets_);
  }
  recorder_->EndUpdates(&lane_);
  given_.store(tickets_, std::memory_order_relaxed);
  LookWhetherCrowded();
  mutex_.Unlock();
}

// What waits further behind must be safe then, too: positions in the queue do not fall.
std::optional<uint64_t> WaitingChanges::AddRefusal(const Entry& entry, const ChangeOrigin& origin) {
  WordMutexLock lock(mutex_);
  if (failed_) return std::nullopt;
  // An update is never undone, so nobody asks which refusals tell of it.
  return Push(
      {.position = queue_.back().position, .hash = entry.hash, .key = entry.key, .origin = origin});
}

void WaitingChanges::RecordAnswer(uint64_t ticket, const SessionRecord& answer) {
  WordMutexLock lock(mutex_);
  if (!undone_.Contains(ticket)) recorder_->RecordSession(answer);
}

const WaitingChanges::Entry* WaitingChanges::First(uint64_t safe) {
  WordMutexLock lock(mutex_);
  if (!queue_.empty() && queue_.front().position <= safe) return &queue_.front();
  published_position_.store(std::max(safe, published_position()), std::memory_order_release);
  LookWhetherCrowded();
  return nullptr;
}

void WaitingChanges::PopUpdates(size_t count) {
  WordMutexLock lock(mutex_);
  room_.GiveUpTo(queue_.front().ticket + count - 1);
  queue_.PopFront(count);
}

void WaitingChanges::Pop() {
  WordMutexLock lock(mutex_);
  Entry& entry = queue_.front();
  entry.key.clear();
  if (entry.kind == Kind::kEvict) Gone(entry.block_bytes);
  keys_.Published(entry.ticket);
  queue_.PopFront();
}

std::optional<std::vector<Pending>> WaitingChanges::Undo(const Entry& failed, uint64_t version,
                                                         ReplyStatus status) {
  const KeyHash hash = failed.hash;
  const std::string key = failed.key;
  WordMutexLock lock(mutex_);
  // It has no value, and its key is short. So it is filled under the mutex.
  const Change deletion{.kind = Change::Kind::kDelete, .version = version, .key = key};
  const std::optional<ChangePlace> place = ReserveUndo(deletion, status);
  if (!place) return std::nullopt;
  recorder_->Fill(deletion, *place);
  std::vector<Pending> blocks;
  std::vector<uint64_t> undone;
  for (size_t i = 0; i < queue_.size(); ++i) {
    Entry& entry = queue_[i];
    if (entry.key != key) continue;
    if (entry.kind == Kind::kPut) blocks.push_back(entry.pending);
    entry.kind = Kind::kNothing;
    undone.push_back(entry.ticket);
  }
  // The deletion waits as any other does, so a refusal that tells of it waits for it.
  const uint64_t ticket = Push({.position = place->end,
                                .hash = hash,
                                .key = key,
                                .kind = Kind::kDelete,
                                .version = version});
  for (const uint64_t it : undone) undone_.Add(it, {ticket, status});
  return blocks;
}

// Their answers are recorded already, with the changes. These count instead if the deletion is
// there, and only then. So whoever has a part of the stream has an answer that fits.
std::optional<ChangePlace> WaitingChanges::ReserveUndo(const Change& deletion, ReplyStatus status) {
  std::vector<uint64_t> tokens;
  std::vector<SessionAnswer> answers;
  for (size_t i = 0; i < queue_.size(); ++i) {
    const Entry& entry = queue_[i];
    const ChangeOrigin& origin = entry.origin;
    if (entry.key != deletion.key || origin.session_token == 0) continue;
    if (!IsAnswerStreamed(origin.opcode)) continue;
    tokens.push_back(origin.session_token);
    answers.push_back({.sequence = origin.sequence,
                       .words = {},
                       .opcode = origin.opcode,
                       .status = static_cast<uint8_t>(status),
                       .zero = {}});
  }
  std::vector<SessionRecord> records;
  for (size_t i = 0; i < tokens.size(); ++i) {
    records.push_back(
        SessionRecord::Answers(tokens[i], std::span(&answers[i], 1), deletion.version));
  }
  return recorder_->ReserveUndo(deletion, records);
}

void WaitingChanges::Fail() {
  WordMutexLock lock(mutex_);
  failed_ = true;
  LookWhetherCrowded();
}

std::vector<Pending> WaitingChanges::TakeAll() {
  WordMutexLock lock(mutex_);
  std::vector<Pending> blocks;
  for (; !queue_.empty(); queue_.PopFront()) {
    if (queue_.front().kind == Kind::kPut) blocks.push_back(queue_.front().pending);
  }
  return blocks;
}

}  // namespace gannet
