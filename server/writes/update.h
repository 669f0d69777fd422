#ifndef GANNET_SERVER_WRITES_UPDATE_H_
#define GANNET_SERVER_WRITES_UPDATE_H_

#include "server/store/store_update.h"
#include "server/writes/writes.h"

namespace gannet {

template <class Flags>
[[gnu::always_inline]] inline bool Writes::Update(const Store::Guess& guess, std::string_view key,
                                                  std::string_view value, Flags&& flags,
                                                  const ChangeOrigin& origin, Decided* decided) {
  return store_->DecideUpdate(guess, key, value.size(), [&](Slot slot) {
    Change put{.version = store_->NextVersion(), .flags = flags(), .key = key, .value = value};
    put.SetOrigin(&origin);
    const uint64_t ticket = waiting_->AddUpdate(guess, &put);
    *decided = {{.version = put.version, .slot = slot.word()}, ticket};
    return ticket != 0;
  });
}

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_UPDATE_H_
