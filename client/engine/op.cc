#include "client/engine/op.h"

#include "common/protocol/message.h"

namespace gannet {

void Op::HashKey() {
  hash = KeyHash::Of(key(), session().view().hash_seed);
  place = server->cache.Prefetch(hash);
}

void Op::HashKeyOf(uint32_t changes) {
  hash = KeyHash::Of(key(), session().view().hash_seed);
  place = server->cache.Prefetch(hash, changes);
  place_changes = changes;
}

bool Op::IsEager() const {
  if (uses_caller_memory()) return false;
  const size_t bytes = sizeof(RequestHeader) + key_bytes + request.value.size();
  return bytes <= session().terms().eager_bytes_max;
}

void Op::QueueRequest() {
  phase.FastGoTo(Phase::kRequestQueued);
  EnqueueRequest();
}

void Op::EnqueueRequest() {
  if (busy.queued_request) return;
  busy.queued_request = true;
  server->requests.Push(number);
}

void Op::CancelRequest() {
  if (!busy.queued_request) return;
  busy.queued_request = false;
  server->requests.Remove(number);
  server->wants_buffer = false;  // it is not known whether the others do
}

void Op::IgnoreAnswer() {
  if (const auto* request = session().IgnoreAnswer(sequence, number)) Charge(*request);
}

void Op::Charge(const RequestWindow::Entry& request) {
  done.cost.posts += request.posts;
  done.cost.sends += request.sends;
  done.cost.completions += request.completions;
}

std::byte* Op::BorrowItem(uint32_t bytes) {
  if (item_is_reply || item.bytes < bytes) {
    ReturnItem();
    item = session().memory().items.Take(bytes);
  }
  return item.data;
}

void Op::ReturnItem() {
  if (item.data == nullptr) return;
  SessionMemory& memory = session().memory();
  (item_is_reply ? memory.replies : memory.items).Return(item);
  item = {};
  item_is_reply = false;
}

}  // namespace gannet
