#include "server/writes/waiting_changes.h"

#include <algorithm>
#include <span>
#include <utility>

namespace gannet {
namespace {

// Half of what the journal takes before it refuses changes.
constexpr uint64_t kCrowdedBytes = 32 << 20;

}  // namespace

const WaitingChanges::Entry* WaitingChanges::LastOf(KeyHash hash) const {
  if (!keys_.MayWait(hash)) return nullptr;
  MutexLock lock(mutex_);
  const auto last = last_.find(hash.value());
  return last == last_.end() ? nullptr : last->second;
}

uint64_t WaitingChanges::Push(Entry entry) {
  entry.ticket = ++tickets_;
  queue_.push_back(std::move(entry));
  const Entry& pushed = queue_.back();
  if (pushed.kind != Kind::kNothing) last_[pushed.hash.value()] = &pushed;
  given_.store(tickets_, std::memory_order_relaxed);
  LookWhetherCrowded();
  return pushed.ticket;
}

void WaitingChanges::LookWhetherCrowded() {
  const uint64_t bytes = queue_.empty() ? 0 : queue_.back().position - published_position();
  crowded_.store(!failed_ && bytes > kCrowdedBytes, std::memory_order_relaxed);
}

std::optional<uint64_t> WaitingChanges::Add(KeyHash hash, const Change& change,
                                            const Pending& pending, uint64_t decided_until_ms) {
  const Kind kind = change.kind == Change::Kind::kPut ? Kind::kPut : Kind::kDelete;
  Entry entry{.hash = hash,
              .key = std::string(change.key),
              .kind = kind,
              .version = change.version,
              .pending = pending,
              .decided_until_ms = decided_until_ms,
              .origin = {.session_token = change.session_token,
                         .sequence = change.sequence,
                         .opcode = change.opcode}};
  std::optional<ChangePlace> place;
  uint64_t ticket = 0;
  {
    MutexLock lock(mutex_);
    place = recorder_->Reserve(change);
    if (!place) return std::nullopt;
    keys_.Add(hash);
    entry.position = place->end;
    ticket = Push(std::move(entry));
  }
  // The entry is found only under the key's lock, and it is not safe before it is filled. So nobody
  // acts on it sooner.
  recorder_->Fill(change, *place);
  return ticket;
}

// What waits further behind must be safe then, too: positions in the queue do not fall.
std::optional<uint64_t> WaitingChanges::AddRefusal(const Entry& entry, const ChangeOrigin& origin) {
  MutexLock lock(mutex_);
  if (failed_) return std::nullopt;
  return Push(
      {.position = queue_.back().position, .hash = entry.hash, .key = entry.key, .origin = origin});
}

void WaitingChanges::RecordAnswer(uint64_t ticket, const SessionRecord& answer) {
  MutexLock lock(mutex_);
  if (!undone_.contains(ticket)) recorder_->RecordSession(answer);
}

const WaitingChanges::Entry* WaitingChanges::First(uint64_t safe) {
  MutexLock lock(mutex_);
  if (!queue_.empty() && queue_.front().position <= safe) return &queue_.front();
  published_position_.store(std::max(safe, published_position()), std::memory_order_release);
  LookWhetherCrowded();
  return nullptr;
}

void WaitingChanges::Pop() {
  MutexLock lock(mutex_);
  const Entry& entry = queue_.front();
  if (entry.kind != Kind::kNothing) {
    keys_.Remove(entry.hash);
    const auto last = last_.find(entry.hash.value());
    if (last != last_.end() && last->second == &entry) last_.erase(last);
  }
  queue_.pop_front();
}

bool WaitingChanges::Undo(const Entry& failed, uint64_t version, ReplyStatus status,
                          const std::function<void(const Pending&)>& drop) {
  const KeyHash hash = failed.hash;
  const std::string key = failed.key;
  MutexLock lock(mutex_);
  // It has no value, and its key is short. So it is filled under the mutex.
  const Change deletion{.kind = Change::Kind::kDelete, .version = version, .key = key};
  RecordUndone(key, version, status);
  const std::optional<ChangePlace> place = recorder_->Reserve(deletion);
  if (!place) return false;
  recorder_->Fill(deletion, *place);
  std::vector<uint64_t> undone;
  for (Entry& entry : queue_) {
    if (entry.key != key) continue;
    if (entry.kind == Kind::kPut) drop(entry.pending);
    if (entry.kind != Kind::kNothing) keys_.Remove(hash);
    entry.kind = Kind::kNothing;
    undone.push_back(entry.ticket);
  }
  last_.erase(hash.value());
  // The deletion waits as any other does, so a refusal that tells of it waits for it.
  keys_.Add(hash);
  const uint64_t ticket = Push({.position = place->end,
                                .hash = hash,
                                .key = key,
                                .kind = Kind::kDelete,
                                .version = version});
  for (const uint64_t it : undone) undone_[it] = {ticket, status};
  any_undone_.store(true, std::memory_order_relaxed);
  return true;
}

// Their answers are recorded already, with the changes. These count instead if the deletion is
// there, and only then. So whoever has a part of the stream has an answer that fits.
void WaitingChanges::RecordUndone(const std::string& key, uint64_t version, ReplyStatus status) {
  for (const Entry& entry : queue_) {
    const ChangeOrigin& origin = entry.origin;
    if (entry.key != key || origin.session_token == 0 || !IsAnswerStreamed(origin.opcode)) continue;
    const SessionAnswer answer = {.sequence = origin.sequence,
                                  .words = {},
                                  .opcode = origin.opcode,
                                  .status = static_cast<uint8_t>(status),
                                  .zero = {}};
    recorder_->RecordSession(
        SessionRecord::Answers(origin.session_token, std::span(&answer, 1), version));
  }
}

void WaitingChanges::Fail() {
  MutexLock lock(mutex_);
  failed_ = true;
  LookWhetherCrowded();
}

std::optional<WaitingChanges::Undone> WaitingChanges::TakeUndone(uint64_t ticket) {
  if (!any_undone_.load(std::memory_order_relaxed)) return std::nullopt;
  MutexLock lock(mutex_);
  const auto it = undone_.find(ticket);
  if (it == undone_.end()) return std::nullopt;
  const Undone undone = it->second;
  undone_.erase(it);
  any_undone_.store(!undone_.empty(), std::memory_order_relaxed);
  return undone;
}

void WaitingChanges::DropAll(const std::function<void(const Pending&)>& drop) {
  MutexLock lock(mutex_);
  for (const Entry& entry : queue_) {
    if (entry.kind == Kind::kPut) drop(entry.pending);
  }
  queue_.clear();
  last_.clear();
}

}  // namespace gannet
