#include "server/log/changes/update_body.h"

#include <cstring>

namespace gannet {

void EncodeUpdateBody(const Change& put, std::byte* body) {
  const UpdateBody head = {.session_token = put.session_token,
                           .item_checksum = put.item_checksum,
                           .sequence = put.sequence,
                           .version = put.version,
                           .value_bytes = static_cast<uint32_t>(put.value.size()),
                           .flags = put.flags,
                           .key_bytes = put.key.size()};
  // The padding, before what may lie over a part of it. There is a key behind the head.
  constexpr uint64_t kZeros = 0;
  std::memcpy(body + UpdateBodyBytes(put.key.size(), put.value.size()) - sizeof(kZeros), &kZeros,
              sizeof(kZeros));
  std::memcpy(body, &head, sizeof(head));
  std::byte* const value = body + sizeof(head);
  if (!put.value.empty()) std::memcpy(value, put.value.data(), put.value.size());
  std::memcpy(value + put.value.size(), put.key.data(), put.key.size());
}

}  // namespace gannet
