#include "server/group/applier.h"

#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/session/session_updates.h"
#include "server/store/store_update.h"
#include "server/stream/update_record_inline.h"

namespace gannet {
namespace {

ItemUpdate ItemUpdateOf(const std::byte* record, uint64_t item_checksum) {
  return {.version = UpdateVersion(record),
          .flags = UpdateFlags(record),
          .key = UpdateKeyOf(record),
          .value = UpdateValueOf(record),
          .item_checksum = item_checksum};
}

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

void Applier::ApplyOne(const ProvenUpdate& update) {
  RingRecord record;
  record.kind = RingRecordKind::kUpdate;
  DecodeProvenUpdate(update.bytes, update.item_checksum, &record.change);
  Apply(record);
}

void Applier::ApplyUpdates(const ProvenUpdates& updates) {
  if (tell_ || !status_.ok()) {
    for (const ProvenUpdate update : updates) ApplyOne(update);
    return;
  }
  Guesses guesses;
  size_t count = 0;
  for (const ProvenUpdate update : updates) {
    store_->GuessBucket(UpdateKeyOf(update.bytes.data()), &guesses[count++]);
  }
  for (size_t i = 0; i < updates.size(); ++i) store_->GuessItem(&guesses[i]);
  store_->Hears() ? MakeUpdates<true>(updates, guesses) : MakeUpdates<false>(updates, guesses);
}

template <bool recorded>
void Applier::MakeUpdates(const ProvenUpdates& updates, const Guesses& guesses) {
  uint64_t bytes = 0;
  uint64_t version = 0;
  const Store::Guess* guess = guesses.data();
  SessionCopies::Updates sessions(&sessions_);
  for (const ProvenUpdate update : updates) {
    const std::byte* const record = update.bytes.data();
    const ItemUpdate put = ItemUpdateOf(record, update.item_checksum);
    Change change;
    if (recorded) DecodeUpdateInline(record, update.item_checksum, &change);
    if (!store_->ApplyUpdate(*guess++, put, recorded ? &change : nullptr)) [[unlikely]] {
      sessions.Flush();
      ApplyOne(update);
      if (!status_.ok()) break;
      continue;
    }
    sessions.Take(UpdateToken(record), UpdateSequence(record), put.version);
    version = std::max(version, put.version);
    bytes += RecordBytes(put.key.size(), put.value.size());
  }
  OnVersion(version + 1);
  if (!recorded) store_->PassUpdates(bytes);
}

void Applier::Make(const Change& change) {
  if (tell_) tell_(change);
  sessions_.Take(change);
  status_ = MakeInStore(change);
}

absl::Status Applier::Restore(const Change& change) {
  OnVersion(change.version + 1);
  return MakeInStore(change);
}

absl::Status Applier::MakeInStore(const Change& change) {
  ReplyStatus status = store_->Apply(change, now_ms_());
  for (int tries = 0; status != ReplyStatus::kOk && tries < kTriesMax; ++tries) {
    if (status == ReplyStatus::kHeapFull) {
      store_->Compact(kHomesPerTry);
    } else if (status == ReplyStatus::kTryAgain || status == ReplyStatus::kIndexFull) {
      store_->MakeSlots();
    } else {
      break;
    }
    status = store_->Apply(change, now_ms_());
  }
  if (status == ReplyStatus::kOk) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "there is no room for an item of the group's (status ", static_cast<int>(status), ")"));
}

}  // namespace gannet
