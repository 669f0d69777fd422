// Requests: encodes and sends them as the session has credits and buffers, and acts on their
// replies. A reply to an operation that is over still counts for its costs, and for a lock that
// nobody else would give back. Whether a reply means "again", "elsewhere" or an end is decided in
// OnAnswer, before any opcode looks at it.

#include "client/engine/request_ops.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "client/engine/caller_memory.h"
#include "client/engine/request_encoding.h"

namespace gannet {
namespace {

// Room for the value that a GET by RPC asks for at first, and what it is at most because others
// were longer (SessionMemory::reply_room): there are few buffers that are longer still. The server
// says if it is too small.
constexpr uint32_t kReplyRoom = 16 << 10;
constexpr uint32_t kReplyRoomMax = 128 << 10;

// Names the caller's memory, where the server READs the value from. Returns what follows the key.
std::string_view NameCallerMemory(Op& op, RequestHeader* header) {
  static_assert(kValueSegmentsMax * sizeof(ValueSegment) <= OpBuffers::kSmallItemBytes);
  std::array<ValueSegment, kValueSegmentsMax> all;
  const auto segments = SegmentsOf(op.request.memory, op.session().memory().first->domain, all);
  if (segments.size() == 1) {
    header->flags |= kValueInBuffer;
    header->write.buffer_address = segments[0].address;
    header->write.buffer_rkey = segments[0].rkey;
    return {};
  }
  header->flags |= kValueInSegments;
  header->write.segments = static_cast<uint32_t>(segments.size());
  std::memcpy(op.buffers->item, segments.data(), segments.size_bytes());
  return {reinterpret_cast<const char*>(op.buffers->item), segments.size_bytes()};
}

// Returns whether the server is to send no value that would need a buffer, or a disk's read. It
// says then how long the value is.
bool AsksForHead(const Op& op) { return ReadsHead(op.request.type) && op.rpc.value_needed == 0; }

// Lends the server the buffer that the request needs: one that a GET's value is written to, or one
// that a long PUT's value is read from. The request's value is left empty if it does not travel in
// the message. Returns the pool that has no buffer left, or nullptr.
const RegisteredPool* LendBuffer(Op& op, RequestView* request, RequestWindow::Entry* entry) {
  SessionMemory& memory = op.session().memory();
  RequestHeader* const header = &request->header;
  if (header->opcode == static_cast<uint8_t>(Opcode::kGet)) {
    LentBuffer& lent = entry->reply;
    lent = memory.replies.Take(std::max({op.rpc.value_needed, memory.reply_room, kReplyRoom}));
    if (lent.data == nullptr) return &memory.replies;
    header->flags |= kValueInBuffer;
    header->get = {
        .buffer_address = lent.address(),
        .buffer_rkey = lent.keys->rkeys[memory.first->domain],
        .buffer_bytes = AsksForHead(op) ? 0 : std::min<uint32_t>(lent.bytes, kValueBytesMax)};
  } else if (op.uses_caller_memory()) {
    request->value = NameCallerMemory(op, header);
  } else if (!op.IsEager()) {
    LentBuffer& lent = entry->value;
    lent = memory.values.Take(header->value_bytes);
    if (lent.data == nullptr) return &memory.values;
    std::memcpy(lent.data, request->value.data(), request->value.size());
    request->value = {};
    header->flags |= kValueInBuffer;
    header->write.buffer_address = lent.address();
    header->write.buffer_rkey = lent.keys->rkeys[memory.first->domain];
  }
  return nullptr;
}

// Takes note of how long a value was that came by RPC. Most that come so lie on a server's disk,
// and are about as long as others there. Of values of different lengths, the room is that of the
// longer ones.
void NoteLength(SessionMemory& memory, uint32_t value_bytes) {
  const uint32_t room = memory.reply_room - memory.reply_room / 8;
  memory.reply_room = std::min(std::max(value_bytes, room), kReplyRoomMax);
}

// Keeps the reply's bytes, which outlive the receive buffer in the operation's own buffer or in a
// long one. Returns false if no long one is free now.
bool KeepReplyBytes(Op& op, const ReplyView& reply) {
  const auto n = static_cast<uint32_t>(reply.value.size());
  std::byte* kept = n <= OpBuffers::kSmallItemBytes ? op.buffers->item : op.BorrowItem(n);
  if (kept == nullptr) return false;
  if (n > 0) std::memcpy(kept, reply.value.data(), n);
  op.value = {reinterpret_cast<const char*>(kept), n};
  return true;
}

}  // namespace

void RequestOps::SendQueued(EngineServer& server) {
  while (!server.ordered.empty() && server.session->sends().CanSend()) {
    const OrderedWork work = server.ordered.front();
    server.ordered.Pop();
    if (!DropUnwanted(work)) server.session->sends().SendOrdered(work);
  }
  if (server.requests.empty()) return;
  using enum RequestQueue::Line;
  server.wants_buffer = false;
  if (!server.requests.empty(kGets)) [[unlikely]]
    SendGets(server);
  while (!server.requests.empty(kOthers) && server.session->requests().CanSend()) {
    if (!Send(server, ops_[server.requests.front(kOthers)])) {
      server.wants_buffer = true;
      return;
    }
  }
}

// A server lets GETs of values on its disk have half of a session's credits, and refuses others.
// Here, who came first goes first.
void RequestOps::SendGets(EngineServer& server) {
  constexpr RequestQueue::Line kGets = RequestQueue::Line::kGets;
  const SessionRequests& requests = server.session->requests();
  uint32_t room = requests.RoomForGets();
  for (; room > 0 && !server.requests.empty(kGets) && requests.CanSend(); --room) {
    if (!Send(server, ops_[server.requests.front(kGets)])) {
      server.wants_buffer = true;
      return;
    }
  }
}

// Drops a work request whose operation is over, unless that releases a lock. Returns whether it
// did.
bool RequestOps::DropUnwanted(const OrderedWork& work) {
  Op& op = ops_[work.op];
  if (!op.over() || op.busy.releases_lock()) [[likely]]
    return false;
  --op.busy.in_flight;
  if (work.kind == InFlightWork::Kind::kCompareAndSwap) op.lock.hold = Op::Hold::kNot;
  ops_.FreeIfQuiet(op);
  return true;
}

// Encodes and sends the first request of a line of the server's queue, which is `op`'s, or ends the
// operation if that is in vain. Returns false if the request has to wait for a buffer. REQUIRES:
// the session can send a request.
bool RequestOps::Send(EngineServer& server, Op& op) {
  ClientSession& session = *server.session;
  const auto dequeue = [&] {
    op.busy.queued_request = false;
    server.requests.Remove(op.number);
  };
  const bool under_lock = op.request.under_lock || op.request.type == OpType::kExtendLock;
  if (under_lock && !server.locks.Holds(op.hash, op.lock.word, op.place_changes)) {
    dequeue();
    ops_.Finish(op, Outcome::kLockLost);
    return true;
  }
  const uint32_t value_bytes = ValueBytesOf(op.request);
  if (value_bytes > kMessageBytesMax && value_bytes > session.grant().value_bytes_max)
      [[unlikely]] {
    dequeue();
    ops_.Finish(op, Outcome::kTooLong);
    return true;
  }
  RequestWindow::Entry entry{.op = op.number, .timeout_ns = op.request.timeout_ns};
  RequestView request{MakeRequestHeader(op), op.key(), op.request.value};
  if (op.request.type == OpType::kIncr) [[unlikely]] {
    const CounterOperands& counter = op.request.counter;
    request.value = {reinterpret_cast<const char*>(&counter), sizeof(counter)};
  }
  if (const RegisteredPool* empty = LendBuffer(op, &request, &entry); empty != nullptr) {
    if (empty->error().ok()) return false;
    dequeue();
    ops_.Finish(op, Outcome::kNoBuffers);
    return true;
  }
  dequeue();
  if (!op.over()) op.phase.FastGoTo(Op::Phase::kRequestSent);
  op.rpc.sequence = session.requests().Send(request, entry, ops_.now_ns());
  return true;
}

bool RequestOps::OnReply(RequestWindow::Entry* answered, const ReplyView& reply) {
  Op& op = ops_[answered->op];
  op.Charge(*answered);
  ++op.done.cost.completions;  // the answer's
  if (op.over()) {
    OnLateReply(op, reply);
    return false;
  }
  OnAnswer(op, answered, reply);
  return true;
}

void RequestOps::OnAnswer(Op& op, RequestWindow::Entry* answered, const ReplyView& reply) {
  const Opcode opcode = RequestOpcode(op);
  if (reply.header.opcode != static_cast<uint8_t>(opcode))
    return ops_.Finish(op, Outcome::kServerBug);
  if (LockOps::MustAskAgain(op, reply.header)) return ops_.Postpone(op);
  if (reply.header.status == static_cast<uint8_t>(ReplyStatus::kTryAgain)) {
    if (op.in_order && !op.rpc.second_step) {
      return ops_.PutOff(op, reply.header.write.version == kPutOffInOrder,
                         reply.header.words[kPutOffMsWord]);
    }
    return ops_.Postpone(op);
  }
  if (reply.header.status == static_cast<uint8_t>(ReplyStatus::kElsewhere)) [[unlikely]]
    return rerouting_.OnRefused(op, reply);
  switch (opcode) {
    case Opcode::kGet:
      return OnGetReply(op, answered, reply);
    case Opcode::kPut:
    case Opcode::kDelete:
    case Opcode::kAppend:
    case Opcode::kPrepend:
    case Opcode::kIncrement:
      return OnWriteReply(op, reply);
    case Opcode::kTouch:
      return OnTouchReply(op, reply);
    case Opcode::kFlush:
      return OnFlushReply(op, reply);
    case Opcode::kLock:
    case Opcode::kUnlock:
    case Opcode::kExtendLock:
      return locks_.OnReply(op, reply);
    case Opcode::kListLocks:
    case Opcode::kListClients:
    case Opcode::kSlowLog:
    case Opcode::kMap:
      if (op.request.type == OpType::kFlush) return OnMapBehindFlush(op, reply);
      op.rpc.next_position = reply.header.list.next;
      return OnReplyForPeople(op, reply);
    case Opcode::kStorage:
      op.rpc.snapshot = reply.header.storage.snapshot;
      return OnReplyForPeople(op, reply);
    case Opcode::kStats:
    case Opcode::kHeats:
    case Opcode::kItemLeases:
    case Opcode::kRails:
      return OnReplyForPeople(op, reply);
    case Opcode::kPing:
    case Opcode::kHeartbeat:
      return ops_.Finish(op, ToOutcome(static_cast<ReplyStatus>(reply.header.status)));
  }
}

void RequestOps::OnReplyForPeople(Op& op, const ReplyView& reply) {
  if (!KeepReplyBytes(op, reply)) return ops_.Finish(op, Outcome::kUnavailable);
  ops_.Finish(op, ToOutcome(static_cast<ReplyStatus>(reply.header.status)));
}

// Keeps the value, which is in the buffer that was lent, or goes there. Returns false if it has no
// room there.
bool RequestOps::TakeValue(Op& op, RequestWindow::Entry* answered, const ReplyView& reply) {
  const ReplyHeader& header = reply.header;
  if (header.value_bytes > answered->reply.bytes) return false;
  if (!header.get.value_in_buffer) {
    std::memcpy(answered->reply.data, reply.value.data(), reply.value.size());
  }
  op.ReturnItem();
  op.item.lent = std::exchange(answered->reply, {});  // Release returns it
  op.item.is_reply = true;
  op.value = {reinterpret_cast<const char*>(op.item.lent.data), header.value_bytes};
  return true;
}

void RequestOps::OnGetReply(Op& op, RequestWindow::Entry* answered, const ReplyView& reply) {
  const ReplyHeader& header = reply.header;
  LocationCache& cache = op.server->cache;
  op.done.cost.by_rpc = true;
  const auto status = static_cast<ReplyStatus>(header.status);
  if (status == ReplyStatus::kBufferTooSmall && IsLargeClass(Slot(header.get.slot).size_class())) {
    return ReadWhereTold(op, header);
  }
  const bool head = status == ReplyStatus::kBufferTooSmall && AsksForHead(op) &&
                    WantsNoValue(op.request, header.get.version);
  if (!head && status == ReplyStatus::kBufferTooSmall && header.value_bytes > op.rpc.value_needed) {
    op.rpc.value_needed = header.value_bytes;
    return op.QueueGet();
  }
  op.session().news().usage().Asked();
  if (status == ReplyStatus::kNotFound) {
    cache.Forget(op.hash, op.place);
    op.session().news().usage().Missed();
  }
  if (status != ReplyStatus::kOk && !head) return ops_.Finish(op, ToOutcome(status));
  op.session().news().usage().Hit();
  if (!head && !TakeValue(op, answered, reply)) return ops_.Finish(op, Outcome::kServerBug);
  if (!head) NoteLength(op.session().memory(), header.value_bytes);
  op.done.found = true;
  const ReplyHeader::Get& item = header.get;
  op.done.info = {item.version, item.user_flags, item.expiry_ms, header.value_bytes};
  const Expiry expiry = Expiry::FromMs(item.expiry_ms);
  if (!expiry.never()) op.done.info.ttl_left = op.server->TtlLeft(expiry.time(), ops_.now_ns());
  cache.RememberTold(op.hash, op.place, Slot(item.slot));
  ops_.Finish(op, Outcome::kOk);
  if (op.uses_caller_memory()) gets_.CopyToCallerMemory(op);
}

// The item is large. The server said where it is, and that this version is not expired.
void RequestOps::ReadWhereTold(Op& op, const ReplyHeader& reply) {
  const Slot slot(reply.get.slot);
  if (op.session().terms().view.Contains(slot.offset(), slot.read_bytes())) {
    if (op.misplaced) return rerouting_.BeginAnew(op);
    op.rpc.version_alive = reply.get.version;
    if (ReadsHead(op.request.type)) return gets_.StartHeadRead(op, slot);
    return gets_.Start(op, slot);
  }
  ops_.Finish(op, Outcome::kServerBug);
}

void RequestOps::OnWriteReply(Op& op, const ReplyView& reply) {
  // Version and slot are the same in both replies.
  const ReplyHeader::Write& written = reply.header.write;
  LocationCache& cache = op.server->cache;
  const auto status = static_cast<ReplyStatus>(reply.header.status);
  op.done.info.version = written.version;
  op.done.found = status == ReplyStatus::kOk;
  if (status == ReplyStatus::kOk && written.slot != 0) {
    cache.RememberWritten(op.hash, op.place, Slot(written.slot));
  } else if (status == ReplyStatus::kOk || status == ReplyStatus::kNotFound ||
             status == ReplyStatus::kOutcomeUnknown) {
    cache.Forget(op.hash, op.place);
  }
  if (op.request.type == OpType::kIncr) op.done.counted = reply.header.increment.number;
  if (status == ReplyStatus::kNotFound && !TellsFound(op.request.type)) {
    return ops_.Finish(op, Outcome::kNotFound);
  }
  ops_.Finish(op, ToOutcome(status));
}

// The answer has no value. So an answer that is given again after a reconnect is as good as the
// first one. A GetAndTouch goes on with a READ of the item.
void RequestOps::OnTouchReply(Op& op, const ReplyView& reply) {
  const bool touched = reply.header.status == static_cast<uint8_t>(ReplyStatus::kOk);
  if (op.request.type != OpType::kGetAndTouch || !touched) return OnWriteReply(op, reply);
  op.rpc.second_step = true;
  const Slot slot(reply.header.write.slot);
  if (op.misplaced) return rerouting_.BeginAnew(op);
  op.server->cache.RememberWritten(op.hash, op.place, slot);
  gets_.Start(op, slot);
}

// Each step is a request of its own, so each happens once.
void RequestOps::OnFlushReply(Op& op, const ReplyView& reply) {
  const ReplyHeader& header = reply.header;
  const auto status = static_cast<ReplyStatus>(header.status);
  if (status != ReplyStatus::kOk) return ops_.Finish(op, ToOutcome(status));
  op.done.counted += static_cast<int64_t>(header.flush.removed);
  if (header.flush.next == 0) {
    if (op.session().grant().history == 0) return ops_.Finish(op, Outcome::kOk);
    op.rpc.second_step = true;
    op.request.position = 0;
    return op.QueueRequest();
  }
  if (header.flush.next <= op.request.position) return ops_.Finish(op, Outcome::kServerBug);
  op.request.position = header.flush.next;
  op.QueueRequest();
}

// The first bytes of the map suffice. A server knows a newer map before it refuses anything by it.
// So if it tells the client's map behind its last step, it did all steps before it ended what a
// later map closes, and all its deletions go along with what moves.
void RequestOps::OnMapBehindFlush(Op& op, const ReplyView& reply) {
  const auto status = static_cast<ReplyStatus>(reply.header.status);
  const bool has_map = status == ReplyStatus::kOk;
  if (!has_map && status != ReplyStatus::kNotFound && status != ReplyStatus::kUnimplemented) {
    return ops_.Finish(op, ToOutcome(status));
  }
  const uint64_t told = has_map ? RevisionOfMap(reply.value).value_or(0) : 0;
  const bool held = rerouting_.HeldSince(op.rpc.flush_map, told);
  ops_.Finish(op, held ? Outcome::kOk : Outcome::kMoved);
}

// The operation is over. The answer still matters for a lock that nobody else will release.
void RequestOps::OnLateReply(Op& op, const ReplyView& reply) {
  if (op.busy.debt == Op::LockDebt::kAnswer) {
    op.busy.debt = Op::LockDebt::kNone;
    const auto status = static_cast<ReplyStatus>(reply.header.status);
    const bool may_have =
        status == ReplyStatus::kOk || (op.may_have_lock() && status != ReplyStatus::kLockHeld);
    if (may_have && op.server->locks.IsOfThisConnection(op.lock.word)) locks_.GiveBack(op);
  } else if (reply.header.status == static_cast<uint8_t>(ReplyStatus::kTryAgain)) {
    ops_.Postpone(op);  // the lock is still held
  } else {
    op.busy.debt = Op::LockDebt::kNone;
  }
  ops_.FreeIfQuiet(op);
}

}  // namespace gannet
