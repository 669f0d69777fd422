#ifndef GANNET_SERVER_STORE_RECORDER_H_
#define GANNET_SERVER_STORE_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/layout/item.h"
#include "server/journal/change_sink.h"
#include "server/store/write_outcome.h"

namespace gannet {

// Tells a ChangeSink of a store's changes, if there is one. The methods return false if the sink
// refuses the change. REQUIRES, of all but on(): on(); and the lock of the key.
class Recorder {
 public:
  explicit Recorder(ChangeSink* sink = nullptr) : sink_(sink) {}
  bool on() const { return sink_ != nullptr; }

  bool Put(const ItemHeader& header, std::string_view key, std::string_view value,
           const ChangeOrigin* origin) const;
  // Of the key and the value that lie in the item's block, under this header.
  bool Put(const std::byte* block, const ItemHeader& header, const ChangeOrigin* origin) const;
  // Of the item in this block. `version` is a new one, so it is higher than the item's.
  bool Delete(const std::byte* block, uint64_t version, const ChangeOrigin* origin) const;

 private:
  bool Record(Change change, const ChangeOrigin* origin) const;

  ChangeSink* sink_;
};

// Returns the item in a block as the change that made it.
Change ChangeOfItem(const std::byte* block, const ItemHeader& header);

// Notes in a change which request made it; nullptr: the server itself.
void SetOrigin(const ChangeOrigin* origin, Change* change);

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_RECORDER_H_
