#include "server/store/recorder.h"

#include "server/store/store_find.h"

namespace gannet {
namespace {

ItemHeader HeaderOf(const std::byte* block) {
  ItemHeader header;
  LoadWords(&header, block, sizeof(header));
  return header;
}

}  // namespace

Change ChangeOfItem(const std::byte* block, const ItemHeader& header) {
  const size_t key_bytes = header.key_bytes();
  return {
      .kind = Change::Kind::kPut,
      .version = header.version,
      .expiry_ms = header.expiry_ms(),
      .flags = header.flags,
      .key = {KeyOfItem(block, key_bytes, header.value_bytes), key_bytes},
      .value = {reinterpret_cast<const char*>(block) + ValueOffset(key_bytes, header.value_bytes),
                header.value_bytes}};
}

void SetOrigin(const ChangeOrigin* origin, Change* change) {
  if (origin == nullptr) return;
  change->session_token = origin->session_token;
  change->sequence = origin->sequence;
  change->number = origin->number;
  change->opcode = origin->opcode;
}

bool Recorder::Record(Change change, const ChangeOrigin* origin) const {
  SetOrigin(origin, &change);
  return sink_->Record(change);
}

bool Recorder::Put(const ItemHeader& header, std::string_view key, std::string_view value,
                   const ChangeOrigin* origin) const {
  return Record({.kind = Change::Kind::kPut,
                 .version = header.version,
                 .expiry_ms = header.expiry_ms(),
                 .flags = header.flags,
                 .key = key,
                 .value = value},
                origin);
}

bool Recorder::Put(const std::byte* block, const ItemHeader& header,
                   const ChangeOrigin* origin) const {
  return Record(ChangeOfItem(block, header), origin);
}

bool Recorder::Delete(const std::byte* block, uint64_t version, const ChangeOrigin* origin) const {
  const ItemHeader header = HeaderOf(block);
  return Record(
      {.kind = Change::Kind::kDelete,
       .version = version,
       .key = {KeyOfItem(block, header.key_bytes(), header.value_bytes), header.key_bytes()}},
      origin);
}

}  // namespace gannet
