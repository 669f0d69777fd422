#ifndef GANNET_SERVER_STORE_ADOPTER_H_
#define GANNET_SERVER_STORE_ADOPTER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
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
  explicit Adopter(Store& store) : store_(store) {}
  void Adopt(const Survey& survey);
  void AdoptItem(Slot slot, const SurveyPlace& from);
  void Restore(const Survey::Restored& item, const SurveyPlace& from);
  void PublishIndex(const Survey& survey);
  // Returns the live commit word of this incarnation.
  uint64_t SealedNow(uint64_t commit, const SurveyPlace& from) const;
  void NoteExpiry(Slot slot);

  Store& store_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_ADOPTER_H_
