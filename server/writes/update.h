#ifndef GANNET_SERVER_WRITES_UPDATE_H_
#define GANNET_SERVER_WRITES_UPDATE_H_

#include "server/store/store_update.h"
#include "server/stream/update_lane_inline.h"
#include "server/writes/writes.h"

namespace gannet {

template <class Flags>
[[gnu::always_inline]] inline bool Writes::Update(const Store::Guess& guess, std::string_view key,
                                                  std::string_view value, Flags&& flags,
                                                  const ChangeOrigin& origin,
                                                  UpdateDecided* decided) {
  return store_->DecideUpdate(guess, key, value.size(), [&](Slot slot) {
    Change put{.version = store_->NextVersion(), .flags = flags(), .key = key, .value = value};
    put.SetOrigin(&origin);
    const uint64_t ticket = waiting_->AddUpdate(guess, &put);
    *decided = {.version = put.version, .slot = slot.word(), .ticket = ticket};
    return ticket != 0;
  });
}

template <class Flags>
[[gnu::always_inline]] inline bool Writes::UpdateInLane(const Store::Guess& guess,
                                                        std::string_view key,
                                                        std::string_view value, Flags&& flags,
                                                        uint64_t session_token, uint64_t sequence,
                                                        UpdateDecided* decided) {
  return store_->TryDecideUpdate(guess, key, value.size(), [&](Slot slot) {
    decided->version = store_->NextVersion();
    decided->slot = slot.word();
    decided->ticket = waiting_->AddToLane(guess, UpdateLane::Update{.version = decided->version,
                                                                    .flags = flags(),
                                                                    .key = key,
                                                                    .value = value,
                                                                    .session_token = session_token,
                                                                    .sequence = sequence});
    return decided->ticket != 0;
  });
}

// Nobody looks at the entry before the key's lock is released. EndUpdates does once for all what
// Enter does for each entry.
template <class Update>
[[gnu::always_inline]] inline uint64_t WaitingChanges::AddToLane(const Store::Guess& guess,
                                                                 const Update& update) {
  const KeyHash hash(guess.hash);
  const uint64_t before = keys_.Last(hash);
  if (!keys_.IsPublished(before) && !MayUpdate(hash, update.key)) [[unlikely]]
    return 0;
  const std::byte* const body = lane_->Append(update);
  if (body == nullptr) [[unlikely]]
    return 0;
  const uint64_t ticket = ++tickets_;
  keys_.SetLast(hash, ticket);
  Entry& entry = queue_.PushBack();
  entry.ticket = ticket;
  entry.before = before;
  entry.position = lane_->position();
  entry.hash = hash;
  entry.kind = Kind::kUpdate;
  entry.version = update.version;
  entry.update = body;
  entry.room_bytes = 0;
  entry.guessed = guess.place;
  return ticket;
}

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_UPDATE_H_
