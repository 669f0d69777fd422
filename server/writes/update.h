#ifndef GANNET_SERVER_WRITES_UPDATE_H_
#define GANNET_SERVER_WRITES_UPDATE_H_

#include "server/log/changes/update_lane_inline.h"
#include "server/memory/store/store_update.h"
#include "server/writes/writes.h"

namespace gannet {

template <class Flags>
[[gnu::always_inline]] inline bool Writes::AddUpdate(const Store::Guess& guess, Slot slot,
                                                     std::string_view key, std::string_view value,
                                                     Flags&& flags, const UpdateOrigin& origin,
                                                     UpdateDecided* decided) {
  decided->version = store_->NextVersion();
  decided->slot = slot.word();
  decided->ticket = waiting_->AddUpdate(guess, {.version = decided->version,
                                                .flags = flags(),
                                                .key = key,
                                                .value = value,
                                                .session_token = origin.session_token,
                                                .sequence = origin.sequence});
  return decided->ticket != 0;
}

template <class Flags>
[[gnu::always_inline]] inline bool Writes::UpdateInLane(const Store::Guess& guess,
                                                        std::string_view key,
                                                        std::string_view value, Flags&& flags,
                                                        const UpdateOrigin& origin,
                                                        UpdateDecided* decided) {
  return store_->DecideUpdate(
      guess, key, value.size(),
      Index::KeyTry::May::kTry, [&](Slot slot) __attribute__((always_inline)) {
        return AddUpdate(guess, slot, key, value, flags, origin, decided);
      });
}

template <class Flags>
inline bool Writes::Update(const Store::Guess& guess, std::string_view key, std::string_view value,
                           Flags&& flags, const UpdateOrigin& origin, UpdateDecided* decided) {
  return store_->DecideUpdate(guess, key, value.size(), Index::KeyTry::May::kWait, [&](Slot slot) {
    if (!waiting_->BeginUpdates()) return false;
    const bool added = AddUpdate(guess, slot, key, value, flags, origin, decided);
    waiting_->EndUpdates();
    return added;
  });
}

// Nobody looks at the entry before the key's lock is released. EndUpdates does once for all what
// Enter does for each entry. Not inlined: together with its caller it has more values than there
// are registers.
[[gnu::noinline]] inline uint64_t WaitingChanges::AddUpdate(const Store::Guess& guess,
                                                            const UpdateLane::Update& update) {
  const KeyHash hash(guess.hash);
  WaitingKeys::Place key = keys_.At(hash);
  const uint64_t before = key.last();
  if (!keys_.IsPublished(before) && !MayUpdate(hash, update.key)) [[unlikely]]
    return 0;
  const std::byte* const body = lane_.Append(update);
  if (body == nullptr) [[unlikely]]
    return 0;
  const uint64_t ticket = ++tickets_;
  key.Set(ticket);
  Entry& entry = queue_.PushBack();
  entry.ticket = ticket;
  entry.before = before;
  entry.position = lane_.position();
  entry.hash = hash;
  entry.kind = Kind::kUpdate;
  entry.update = body;
  entry.guessed = guess.place;
  return ticket;
}

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_UPDATE_H_
