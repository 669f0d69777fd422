// Writes: what is safe is published, by the stores of any other write, in the order of the records.

#include <span>

#include "common/base/check.h"
#include "server/memory/store/store_update.h"
#include "server/writes/writes.h"

namespace gannet {

// A ticket is known before First may note that all below `safe` is published. So who finds that
// noted finds all tickets, too.
void Writes::Publish(uint64_t safe) {
  if (!waits() || safe <= waiting_->published_position()) return;
  WordMutexLock publishing(publish_mutex_);
  PublishUpdates(safe);
  while (const WaitingChanges::Entry* const entry = waiting_->First(safe)) {
    const uint64_t ticket = entry->ticket;
    if (!PublishOne(*entry)) return;
    waiting_->SetPublished(ticket);
    PublishUpdates(safe);
  }
}

void Writes::PublishUpdates(uint64_t safe) {
  for (;;) {
    size_t count = 0;
    uint64_t last = 0;
    for (const WaitingChanges::Entry& entry : waiting_->FirstRun()) {
      if (entry.kind != WaitingChanges::Kind::kUpdate || entry.position > safe) break;
      if (!PublishByGuess(entry)) [[unlikely]]
        PublishUpdate(entry);
      last = entry.ticket;
      ++count;
    }
    if (count == 0) return;
    waiting_->PopUpdates(count);
    waiting_->SetPublished(last);
  }
}

// The entry goes while the key's lock is held, so nobody finds it afterwards.
bool Writes::PublishOne(const WaitingChanges::Entry& entry) {
  switch (entry.kind) {
    case WaitingChanges::Kind::kUpdate:
      break;
    case WaitingChanges::Kind::kPut:
      return PublishPut(entry);
    case WaitingChanges::Kind::kDelete:
    case WaitingChanges::Kind::kEvict:
      PublishDeletion(entry);
      return true;
    case WaitingChanges::Kind::kNothing:
      waiting_->Pop();
      return true;
  }
  GANNET_CHECK(false, "PublishUpdates comes first");
  return false;
}

// Where the item was when the update was decided. Returns false if it is not there any more. The
// body is whole: an entry is found only behind the queue's mutex, which was held until then.
[[gnu::always_inline]] inline bool Writes::PublishByGuess(const WaitingChanges::Entry& entry) {
  const Store::Guess guess = {.hash = entry.hash.value(), .place = entry.guessed};
  const auto decode = [body = entry.update] { return ItemUpdateOf(body); };
  return store_->MakeUpdate(guess, decode, [&] { waiting_->Made(entry); });
}

// The item does not expire, so the time does not matter.
void Writes::PublishUpdate(const WaitingChanges::Entry& entry) {
  const ItemUpdate update = ItemUpdateOf(entry.update);
  const Locked key(*store_, entry.hash, update.key, ServerTime());
  store_->MakeUpdate(key, update);
  waiting_->Made(entry);
}

void Writes::PublishDeletion(const WaitingChanges::Entry& entry) {
  const Locked key(*store_, entry.hash, entry.key, store_->Now({}));
  store_->RemoveRecorded(key, entry.version);
  waiting_->Pop();
}

// A store that evicts has no slot while what is in its place may not go: the key's neighbours are
// locked, or wait behind this put for their eviction. Its client sends it again. In any other store
// the index may have to grow first. If it cannot, the store has no item of the key, or there would
// be a slot for it. If the item has expired that the put was decided by, that was the last one of
// the key, since a key's changes are published in the order in which they were decided.
bool Writes::PublishPut(const WaitingChanges::Entry& entry) {
  for (int tries = 0;; ++tries) {
    {
      const ServerTime now = store_->Now({});
      const Locked key(*store_, entry.hash, entry.key, now);
      if (!entry.decided_until.never() && store_->Now(now).IsPast(entry.decided_until)) {
        return UndoAndPop(entry, ReplyStatus::kTryAgain);
      }
      const ReplyStatus status = store_->Install(key, entry.pending, nullptr).status;
      if (status == ReplyStatus::kOk) {
        waiting_->Pop();
        return true;
      }
      if (store_->evicts()) return UndoAndPop(entry, ReplyStatus::kTryAgain);
      if (status != ReplyStatus::kTryAgain || tries > 0) {
        return UndoAndPop(entry, ReplyStatus::kIndexFull);
      }
    }
    store_->MakeSlots();
  }
}

bool Writes::UndoAndPop(const WaitingChanges::Entry& entry, ReplyStatus status) {
  const auto blocks = waiting_->Undo(entry, store_->NextVersion(), status);
  if (!blocks) return false;
  for (const Pending& block : *blocks) store_->Drop(block);
  waiting_->Pop();
  return true;
}

void Writes::Fail() {
  if (waits()) waiting_->Fail();
}

}  // namespace gannet
