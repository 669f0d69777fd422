#ifndef GANNET_SERVER_MEMORY_STORE_ADOPTER_H_
#define GANNET_SERVER_MEMORY_STORE_ADOPTER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/server_time.h"
#include "server/memory/recovery/survey.h"
#include "server/memory/store/items.h"

namespace gannet {

// Takes over the items that a former process left in a memory file (docs/memory-file.md): all are
// sealed for the new incarnation. No item is copied or moved.
class Adopter {
 public:
  explicit Adopter(Items& items) : items_(items) {}
  // Takes over what the survey found. Until the store is published, the region says that it is
  // being taken over.
  void Adopt(const Survey& survey, uint32_t threads);

 private:
  // An item that expires.
  struct Expiring {
    KeyHash hash;
    Expiry expiry;
  };

  // Adopts the items of the buckets [first, end). Several threads adopt different ones.
  void AdoptItems(const Survey& survey, const Survey::Table& table, uint64_t first, uint64_t end);
  void AdoptItem(Slot slot, const SurveyPlace& from);
  void Restore(const Survey::Restored& item, const SurveyPlace& from);
  // Returns the live commit word of this incarnation.
  uint64_t SealedNow(uint64_t commit, const SurveyPlace& from) const;
  // Appends when the item expires, if it does.
  void AppendExpiry(Slot slot, std::vector<Expiring>* expiries) const;
  void NoteExpiries(std::span<const Expiring> expiries);

  Items& items_;
  Mutex expiries_mutex_;  // for the floors of expiries, which one thread at a time may lower
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_ADOPTER_H_
