#include "client/engine/op.h"

#include "common/protocol/message.h"

namespace gannet {

void Op::HashKey() {
  hash = KeyHash::Of(key(), session().terms().view.hash_seed);
  place = server->cache.Prefetch(hash);
}

void Op::HashKeyOf(uint32_t changes) {
  hash = KeyHash::Of(key(), session().terms().view.hash_seed);
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
  server->requests.Push(number, RequestQueue::Line::kOthers);
}

void Op::QueueGet() {
  phase.FastGoTo(Phase::kRequestQueued);
  busy.queued_request = true;
  server->requests.Push(number, RequestQueue::Line::kGets);
}

void Op::CancelRequest() {
  if (!busy.queued_request) return;
  busy.queued_request = false;
  server->requests.Remove(number);
  server->wants_buffer = false;  // it is not known whether the others do
}

void Op::IgnoreAnswer() {
  if (const auto* request = session().requests().IgnoreAnswer(rpc.sequence, number))
    Charge(*request);
}

void Op::Charge(const RequestWindow::Entry& request) {
  done.cost.posts += request.posts;
  done.cost.sends += request.sends;
  done.cost.completions += request.completions;
}

std::byte* Op::BorrowItem(uint32_t bytes) {
  if (item.is_reply || item.lent.bytes < bytes) {
    ReturnItem();
    item.lent = session().memory().items.Take(bytes);
  }
  return item.lent.data;
}

void Op::ReturnItem() {
  if (item.lent.data == nullptr) return;
  SessionMemory& memory = session().memory();
  (item.is_reply ? memory.replies : memory.items).Return(item.lent);
  item = {};
}

}  // namespace gannet
