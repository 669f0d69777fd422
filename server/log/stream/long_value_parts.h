#ifndef GANNET_SERVER_LOG_STREAM_LONG_VALUE_PARTS_H_
#define GANNET_SERVER_LOG_STREAM_LONG_VALUE_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/protocol/limits.h"
#include "server/log/stream/ring_record.h"

namespace gannet {

// Puts the long values of a stream together from their parts.
//
// One transfer is under way at a time. A part of another one says that the former was given up.
//
// One thread.
class LongValueParts {
 public:
  // Returns false if the part does not fit what came before.
  bool Add(const RingRecord& part) {
    if (part.transfer != transfer_) {
      transfer_ = part.transfer;
      parts_.clear();
    }
    if (part.offset != parts_.size() || parts_.size() + part.part.size() > kValueBytesMax) {
      return false;
    }
    parts_.append(part.part);
    return true;
  }
  // Returns the put that ends a transfer, with its value, which is good until Clear or Add. Returns
  // nullopt if parts are missing.
  std::optional<Change> End(const RingRecord& long_put) const {
    if (long_put.transfer != transfer_ || parts_.size() != long_put.value_bytes) {
      return std::nullopt;
    }
    Change put = long_put.change;
    put.value = parts_;
    return put;
  }
  void Clear() { std::string().swap(parts_); }

 private:
  uint64_t transfer_ = 0;
  std::string parts_;  // of that transfer
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_STREAM_LONG_VALUE_PARTS_H_
