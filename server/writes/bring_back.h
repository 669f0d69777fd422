#ifndef GANNET_SERVER_WRITES_BRING_BACK_H_
#define GANNET_SERVER_WRITES_BRING_BACK_H_

#include <string_view>

#include "common/base/server_time.h"
#include "server/memory/store/store.h"
#include "server/memory/store/write_outcome.h"

namespace gannet {

// Makes an item of a value that was read from the disk, and whose stub was `found`: with the
// version, flags and expiry of that stub. Returns false, and changes nothing, if the key has
// something else by now, or there is no room. REQUIRES: no lock is held; the store does not record.
bool BringBack(Store* store, std::string_view key, const ReadOutcome& found, std::string_view value,
               ServerTime now);

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_BRING_BACK_H_
