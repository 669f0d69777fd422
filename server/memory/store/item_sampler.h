#ifndef GANNET_SERVER_MEMORY_STORE_ITEM_SAMPLER_H_
#define GANNET_SERVER_MEMORY_STORE_ITEM_SAMPLER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "common/base/hash.h"
#include "server/memory/index/index.h"
#include "server/memory/store/heat.h"
#include "server/memory/store/items.h"

namespace gannet {

// Some of a store's items, to choose one that is to go: those that lie near each other in the
// index, at a random place.
//
// Thread safety: as the items'.
class ItemSampler {
 public:
  enum class Kind : uint8_t { kValues, kStubs, kAll };
  // How items are chosen that lie near a home.
  struct Choice {
    uint32_t size_class;  // this class is preferred; kSizeClassNone: none is
    uint64_t reach;       // homes to both sides
    bool window_only;     // only items in the two buckets of the home's window
    Kind kind;
  };
  struct Candidate {
    Index::Found found;
    int32_t worth;  // less is colder
  };
  // About so many items are compared, of which one goes. There may be twice as many.
  static constexpr uint64_t kCompared = 32;

  // The items, which have an Eviction, outlive this.
  explicit ItemSampler(Items& items) : items_(items) {}

  // `held` is the lock of this home, or of the items' homes.
  size_t ListNear(const Index::Lock& held, IndexTable& table, uint64_t home, const Choice& choice,
                  std::span<Candidate> candidates) const;
  // Gives the items at random places to `take`, under their lock, until it takes one and returns
  // true. Returns false if it took none. REQUIRES: no lock is held.
  using Take = absl::FunctionRef<bool(const Index::Lock&, std::span<Candidate>)>;
  bool Sample(Kind kind, uint32_t size_class, Take take) const;

 private:
  Items& items_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_ITEM_SAMPLER_H_
