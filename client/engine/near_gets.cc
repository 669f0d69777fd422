// GETs that are answered from copies. The time of this Poll was read after all of them were begun,
// and after all writes of their keys were over, so a copy that is right by then is a right answer.

#include "client/engine/near_gets.h"

#include <algorithm>
#include <cstring>

#include "client/engine/caller_memory.h"
#include "common/base/copy_bytes.h"

namespace gannet {

bool NearGets::Start(EngineServer& server, Op& op) {
  NearCache& near_cache = *server.near_cache;
  const ItemCopies::Copy* const copy =
      near_cache.Find(*server.session, op.hash, op.key(), ops_.now_ns());
  if (copy != nullptr && Answer(server, op, *copy)) return true;
  if (op.request.type == OpType::kGetInto) {
    lookups_.StartInto(op);
    return true;
  }
  if (!near_cache.Samples()) return false;
  lookups_.Start(op, server.cache.Find(op.hash, op.place));
  return true;
}

// Tells the caller of Poll at once if there is room, and frees the slot, as OrdinaryGets::Report
// does. Returns false if the value cannot go where it should.
bool NearGets::Answer(EngineServer& server, Op& op, const ItemCopies::Copy& copy) {
  const bool into = op.request.type == OpType::kGetInto;
  if (into && !HasCpuAddresses(op.request.memory)) return false;
  std::string_view value = copy.value;
  if (reports_.full() && !into && !Keep(op, copy, &value)) return false;
  server.session->lease().OnAnsweredAlone(ops_.now_ns());
  if (server.touches != nullptr) server.touches->Used(copy.slot);
  const ItemInfo info = server.MakeItemInfo(copy.header, ops_.now_ns());
  if (reports_.full()) {
    op.done.cost.from_near_cache = true;
    lookups_.FinishHit(op, info, value);
    return true;
  }
  server.session->usage().Hit();
  Completion& done = reports_.Next();
  done = {.user_data = op.request.user_data, .found = true, .info = info};
  done.cost.from_near_cache = true;
  if (into) [[unlikely]] {
    done.type = OpType::kGetInto;
    CopyTo(op.request.memory, value);
    op.request.type = OpType::kGet;
    op.request.memory = {};
  } else {
    CopyValueBytes(op.request.out.data(), value.data(),
                   std::min<size_t>(op.request.out.size(), value.size()));
  }
  ops_.Free(op);
  return true;
}

// Copies the value to the operation's own memory: the copy may be gone when the caller takes it.
// Returns false if there is no buffer for it now.
bool NearGets::Keep(Op& op, const ItemCopies::Copy& copy, std::string_view* value) {
  const auto bytes = static_cast<uint32_t>(copy.value.size());
  std::byte* const kept =
      bytes <= OpBuffers::kSmallItemBytes ? op.buffers->item : op.BorrowItem(bytes);
  if (kept == nullptr) return false;
  std::memcpy(kept, copy.value.data(), bytes);
  *value = {reinterpret_cast<const char*>(kept), bytes};
  return true;
}

}  // namespace gannet
