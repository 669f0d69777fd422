#ifndef GANNET_SERVER_STORE_ADOPTER_H_
#define GANNET_SERVER_STORE_ADOPTER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "server/recovery/survey.h"
#include "server/store/store.h"

namespace gannet {

// Makes a store that goes on with what a former process left in a memory file (docs/durability.md).
// All items are sealed for the new incarnation. No item is copied or moved.
class Adopter {
 public:
  // REQUIRES: RecoveryArea::HasItems. DataLoss: the region is damaged. Internal: the heap cannot be
  // made as it was. In both cases nothing was changed.
  static absl::StatusOr<std::unique_ptr<Store>> TakeOver(const Store::Options& options);

 private:
  // When an item expires.
  struct Expiry {
    KeyHash hash;
    uint64_t ms;
  };

  explicit Adopter(Store& store) : store_(store) {}
  void Adopt(const Survey& survey, uint32_t threads);
  // Adopts the items of the buckets [first, end). Several threads adopt different ones.
  void AdoptItems(const Survey& survey, const Survey::Table& table, uint64_t first, uint64_t end);
  void AdoptItem(Slot slot, const SurveyPlace& from);
  void Restore(const Survey::Restored& item, const SurveyPlace& from);
  void PublishIndex(const Survey& survey);
  // Returns the live commit word of this incarnation.
  uint64_t SealedNow(uint64_t commit, const SurveyPlace& from) const;
  // Appends when the item expires, if it does.
  void AppendExpiry(Slot slot, std::vector<Expiry>* expiries) const;
  void NoteExpiries(std::span<const Expiry> expiries);

  Store& store_;
  Mutex expiries_mutex_;  // for the floors of expiries, which one thread at a time may lower
};

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_ADOPTER_H_
