#include "server/writes/bring_back.h"

#include <optional>

#include "common/layout/stub.h"
#include "server/log/changes/change.h"
#include "server/memory/store/store_find.h"

namespace gannet {

// No version is given twice, so a stub of this version has this value, wherever its record is. The
// change happened when that version was given, so nobody hears of it again.
bool BringBack(Store* store, std::string_view key, const ReadOutcome& found, std::string_view value,
               ServerTime now) {
  const KeyHash hash = store->HashOf(key);
  const Change item = {.version = found.version,
                       .expiry = found.attributes.expiry,
                       .flags = found.attributes.flags,
                       .key = key,
                       .value = value};
  const std::optional<Pending> pending = store->MakeLong(hash, item, now);
  if (!pending) return false;
  const Store::Locked locked(*store, hash, key, now);
  if (!IsStub(locked.item.slot) || locked.item.version != found.version) {
    store->Drop(*pending);
    return false;
  }
  store->Install(locked, *pending, /*put=*/nullptr);
  return true;
}

}  // namespace gannet
