#ifndef GANNET_COMMON_PROTOCOL_HEATS_H_
#define GANNET_COMMON_PROTOCOL_HEATS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gannet {

// Where a server that evicts keeps how much its items are used: the value of a kHeats reply. It is
// an array of one byte for each `granule_bytes` of the region. The byte where an item's block
// begins is the item's heat. 0 means that no item begins there. Clients may READ it.
//
//   uses = 2 ^ ((heat - used_once) / units_per_doubling)
//
// All fields are 0 if the server keeps no heats. New fields are appended, and a reader takes as
// many as it knows.
struct HeatsReply {
  uint64_t address;
  uint64_t bytes;
  uint32_t rkey;
  uint16_t granule_bytes;
  uint8_t used_once;
  uint8_t units_per_doubling;
  uint8_t most;  // uses beyond this heat are not counted
  uint8_t reserved[7];
};
static_assert(sizeof(HeatsReply) == 32 && std::is_trivially_copyable_v<HeatsReply>);
static_assert(offsetof(HeatsReply, rkey) == 16 && offsetof(HeatsReply, used_once) == 22 &&
              offsetof(HeatsReply, most) == 24);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_HEATS_H_
