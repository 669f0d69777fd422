// From records to the store: updates in a loop of their own, everything else one by one, all in
// the order of the stream.

#include "server/group/members/applier.h"

#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/log/changes/update_body.h"
#include "server/memory/store/store_update.h"
#include "server/sessions/session/session_updates.h"

namespace gannet {
namespace {

// A primary found room for the item in as much memory. Here it may first have to be made.
constexpr int kTriesMax = 64;
constexpr size_t kHomesPerTry = 4096;

}  // namespace

void Applier::Apply(const RingRecord& record) {
  if (!status_.ok()) return;
  OnVersion(record.version() + 1);
  switch (record.kind) {
    case RingRecordKind::kPut:
    case RingRecordKind::kUpdate:
    case RingRecordKind::kDelete:
      return Make(record.change);
    case RingRecordKind::kUpdateBatch:
      return ApplyUpdates(ProvenUpdates::OfBatch(std::as_bytes(std::span(record.part))));
    case RingRecordKind::kPart:
      if (parts_.Add(record)) return;
      status_ = absl::DataLossError("the parts of a long value do not fit together");
      return;
    case RingRecordKind::kLongPut: {
      const std::optional<Change> put = parts_.End(record);
      if (!put) {
        status_ = absl::DataLossError("parts of a long value are missing");
        return;
      }
      Make(*put);
      return parts_.Clear();
    }
    case RingRecordKind::kSessionBegun:
    case RingRecordKind::kSessionEnded:
    case RingRecordKind::kAnswers:
      return sessions_.Take(record.session);
    case RingRecordKind::kWrap:
      return;
  }
}

void Applier::ApplyOne(const std::byte* update) {
  RingRecord record;
  record.kind = RingRecordKind::kUpdate;
  DecodeUpdateBody(update, &record.change);
  Apply(record);
}

void Applier::ApplyUpdates(const ProvenUpdates& updates) {
  if (joiner_ != nullptr || !status_.ok()) {
    for (const std::byte* const update : updates) ApplyOne(update);
    return;
  }
  const bool recorded = store_->Hears();
  for (auto from = updates.begin(); from != updates.end() && status_.ok();) {
    Guesses guesses;
    size_t count = 0;
    auto to = from;
    for (; count < kUpdatesAtOnce && to != updates.end(); ++to) {
      store_->GuessBucket(UpdateKeyOf(*to), &guesses[count++]);
    }
    for (size_t i = 0; i < count; ++i) store_->GuessItem(&guesses[i]);
    recorded ? MakeUpdates<true>(from, to, guesses) : MakeUpdates<false>(from, to, guesses);
    from = to;
  }
}

template <bool recorded>
void Applier::MakeUpdates(ProvenUpdates::Iterator from, ProvenUpdates::Iterator to,
                          const Guesses& guesses) {
  uint64_t bytes = 0;
  uint64_t version = 0;
  const Store::Guess* guess = guesses.data();
  SessionCopies::Updates sessions(&sessions_);
  for (; from != to; ++from) {
    const std::byte* const update = *from;
    const ItemUpdate put = ItemUpdateOf(update);
    Change change;
    if (recorded) DecodeUpdateBody(update, &change);
    if (!store_->ApplyUpdate(*guess++, put, recorded ? &change : nullptr)) [[unlikely]] {
      sessions.Flush();
      ApplyOne(update);
      if (!status_.ok()) break;
      continue;
    }
    sessions.Take(UpdateToken(update), UpdateSequence(update), put.version);
    version = std::max(version, put.version);
    bytes += RecordBytes(put.key.size(), put.value.size());
  }
  OnVersion(version + 1);
  if (!recorded) store_->PassUpdates(bytes);
}

void Applier::Make(const Change& change) {
  if (joiner_ != nullptr) joiner_->OnApplied(change);
  sessions_.Take(change);
  status_ = MakeInStore(change);
}

absl::Status Applier::Restore(const Change& change) {
  OnVersion(change.version + 1);
  return MakeInStore(change);
}

absl::Status Applier::MakeInStore(const Change& change) {
  ReplyStatus status = store_->Apply(change, context_.server->Time());
  for (int tries = 0; status != ReplyStatus::kOk && tries < kTriesMax; ++tries) {
    if (status == ReplyStatus::kHeapFull) {
      store_->Compact(kHomesPerTry);
    } else if (status == ReplyStatus::kTryAgain || status == ReplyStatus::kIndexFull) {
      store_->MakeSlots();
    } else {
      break;
    }
    status = store_->Apply(change, context_.server->Time());
  }
  if (status == ReplyStatus::kOk) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "there is no room for an item of the group's (status ", static_cast<int>(status), ")"));
}

}  // namespace gannet
