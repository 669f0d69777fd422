// The datapath of a worker: takes completions, and executes the requests among them. A request
// comes through OnCompletion, then the lane or ServeUpdate if it is an ordinary PUT, otherwise
// OnMessage, OnRequest, and ExecuteWrite or ExecuteWithValue. Between these RequestAdmission says
// whether it is executed at all.

#include "server/rpc/requests.h"

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "common/base/data_path_checks.h"
#include "common/protocol/rails_reply.h"
#include "glog/logging.h"
#include "server/rpc/put_off.h"
#include "server/rpc/serve_update.h"
#include "server/rpc/work_kind.h"

namespace gannet {
namespace {

// What it takes to bring a value from the disk, about.
constexpr uint64_t kBringMs = 1;

bool IsHeartbeat(const RequestHeader& header) {
  return header.opcode == static_cast<uint8_t>(Opcode::kHeartbeat);
}

// Returns true if the server must READ the value.
bool ValueElsewhere(const RequestHeader& header) {
  return (header.flags & (kValueInBuffer | kValueInSegments)) != 0 && header.value_bytes > 0;
}

// Returns true if the client named a buffer that is long enough for the value, and the item is not
// large. Clients READ large items themselves, wherever the reply says they are.
bool FitsBuffer(const RequestHeader& header, const ReplyHeader& reply) {
  return (header.flags & kValueInBuffer) != 0 && header.get.buffer_bytes >= reply.value_bytes &&
         !IsLargeClass(Slot(reply.get.slot).size_class());
}

// Refuses a write under a lock that the session does not hold.
ReplyHeader LockLost(const RequestView& request, const LockRequests& locks) {
  ReplyHeader reply = ReplyTo(request.header, ReplyStatus::kLockLost);
  // The reply to an increment has no place for it.
  if (reply.opcode != static_cast<uint8_t>(Opcode::kIncrement)) {
    reply.write.lock_word = locks.WordOf(request.key);
  }
  return reply;
}

// Hardly a request is of a leased key, so all are looked at together.
inline void GuessUnleasedItems(const Store& store, BootTime now, std::span<Received> received) {
  const ItemLeases& leases = *store.leases();
  const MarkedKeys::Counts counts = leases.counts_of_marks();
  uint32_t any = 0;
  for (Received& request : received) {
    any |= counts.Of(request.guess.hash);
    store.GuessItem(&request.guess);
    request.connection->heard = now;
  }
  if (any == 0) return;
  for (Received& request : received) {
    if (leases.MayHave(KeyHash(request.guess.hash))) request.guess.Drop();
  }
}

}  // namespace

// Works in three steps, each for all requests that arrived, so that each step prefetches the
// store's memory for the next one. If the store is larger than the caches, these cache misses are
// most of a request's time.
size_t Requests::Poll(size_t most) {
  GANNET_CHECK_DATA_PATH(most <= kPollMax, "more completions than there is room for");
  std::array<ibv_wc, kPollMax> completions;
  std::array<Received, kPollMax> received;
  const size_t n = cq_->Poll(std::span(completions).first(most));
  Received* end = received.data();
  for (const ibv_wc& completion : std::span(completions).first(n)) {
    end += OnCompletion(completion, end);
  }
  if (store_.updates_at_once()) [[likely]] {
    const BootTime now = context_.now.boot;
    for (Received* request = received.data(); request != end; ++request) {
      store_.GuessItem(&request->guess);
      request->connection->heard = now;
    }
  } else if (BeginOthers({received.data(), end})) {
    return n;
  }
  context_.slow_requests.BeginBatch();
  for (Received* request = received.data(); request != end; ++request) {
    if (!ServeUpdate<Updates::kAtOnce>(*request))
      OnMessage(request->connection, request->message());
  }
  if (store_.evicts()) [[unlikely]]
    NoteUpdates({received.data(), end});
  return n;
}

bool Requests::BeginOthers(std::span<Received> received) {
  if (received.empty()) return false;
  const BootTime now = context_.now.boot;
  if (store_.leases() != nullptr) {
    GuessUnleasedItems(store_, now, received);
  } else {
    for (Received& request : received) {
      store_.GuessItem(&request.guess);
      request.connection->heard = now;
    }
  }
  if (!store_.records()) return false;
  context_.slow_requests.BeginBatch();
  ServeRecorded(received);
  return true;
}

// Returns true and fills in `received` if the completion is a request. Handles any other completion
// at once, before the requests that came with it, as if those had come a little later.
[[gnu::always_inline]] inline bool Requests::OnCompletion(const ibv_wc& completion,
                                                          Received* received) {
  const WrId id = WrId::Unpack(completion.wr_id);
  if (id.kind != static_cast<uint8_t>(WorkKind::kReceive)) [[unlikely]] {
    OnOtherCompletion(completion);
    return false;
  }
  receives_->Recycle(id.slot);  // it is posted again at the end of this Poll
  ServerConnection* connection = of_rail_->FindOwner(completion);
  if (connection == nullptr) [[unlikely]]
    return false;
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    closer_.Close(connection, ibv_wc_status_str(completion.status));
    return false;
  }
  received->connection = connection;
  received->bytes = completion.byte_len;
  received->data = receives_->Message(id.slot, completion.byte_len).data();
  store_.GuessBucket(PlainPut::KeyOf(received->data), &received->guess);
  return true;
}

void Requests::OnOtherCompletion(const ibv_wc& completion) {
  const WrId id = WrId::Unpack(completion.wr_id);
  switch (static_cast<WorkKind>(id.kind)) {
    case WorkKind::kSend:
      return OnSendDone(completion, id.slot);
    case WorkKind::kDrain:
      if (ServerConnection* connection = of_rail_->FindOwner(completion))
        closer_.OnDrained(connection->id);
      return;
    case WorkKind::kReceive:
      break;
  }
  LOG(DFATAL) << "completion of unknown work " << completion.wr_id;
}

// Counts PUTs as uses. Done for all requests of a Poll at once, so that it costs those nothing if
// the store does not evict.
void Requests::NoteUpdates(std::span<const Received> received) {
  for (const Received& request : received) {
    PlainPut put;
    if (put.Decode(request.message())) store_.NoteUpdate(request.guess, put.key());
  }
}

void Requests::OnSendDone(const ibv_wc& completion, uint32_t position) {
  ServerConnection* connection = of_rail_->FindOwner(completion);
  context_.counters.send_completions.Add(1);
  if (connection == nullptr) return;
  const bool ok = completion.status == IBV_WC_SUCCESS;
  if (!ok) closer_.Close(connection, ibv_wc_status_str(completion.status));
  connection->send_queue.Complete(
      position, [&](Resource resource) { closer_.Release(connection, resource, ok); });
  if (connection->has_long_puts() && !connection->closing) {
    long_values_.PostReads(connection);
  }
}

void Requests::OnMessage(ServerConnection* connection, std::span<const std::byte> message) {
  if (connection->closing) [[unlikely]]
    return observation_.TakeLastNews(connection->session, message);
  if (message.size() < sizeof(RequestHeader)) {
    return closer_.Close(connection, "a message shorter than a header");
  }
  RequestView request;
  const std::optional<RequestError> error = DecodeRequest(message, &request);
  if (TooManyUnanswered(*connection)) {
    return closer_.Close(connection, "more requests unanswered than credits");
  }
  if (!error && admission_.IsRefused(connection, request)) {
    served_ = true;
    return;
  }
  const bool heartbeat = IsHeartbeat(request.header);
  ++connection->unanswered;
  (heartbeat ? context_.counters.heartbeats : context_.counters.rpcs).Add(1);
  served_ |= !heartbeat;
  if (error) {
    if (!admission_.AdmitMalformed(connection, request.header, message)) return;
    return replies_.Refuse(connection, request.header, *error);
  }
  context_.counters.by_opcode[request.header.opcode].Add(1);
  Execute(connection, request);
}

// Each was counted when it came.
void Requests::ServeAside() {
  while (const auto aside = admission_.TakeAside()) {
    ServerConnection* const connection = aside->connection;
    RequestView request;
    const std::optional<RequestError> error = DecodeRequest(aside->message, &request);
    if (!error && admission_.IsRefused(connection, request)) continue;
    ++connection->unanswered;
    if (!error) {
      Execute(connection, request);
    } else if (admission_.AdmitMalformed(connection, request.header, aside->message)) {
      replies_.Refuse(connection, request.header, *error);
    }
  }
}

// Updates in place (ServeUpdate) are not timed: they do not wait for anything.
void Requests::Execute(ServerConnection* connection, const RequestView& request) {
  if (!context_.slow_requests.timed() || IsHeartbeat(request.header))
    return OnRequest(connection, request);
  const BootTime began = context_.slow_requests.Begin();
  OnRequest(connection, request);
  context_.slow_requests.End(*connection, request, began);
}

void Requests::OnRequest(ServerConnection* connection, const RequestView& request) {
  if (IsHeartbeat(request.header)) {
    observation_.NoteServerSet(*connection, request.header.heartbeat.server_set);
    if (!request.value.empty() && !observation_.TakeNews(connection->session, request)) {
      return replies_.Refuse(connection, request.header,
                             {ReplyStatus::kInvalidArgument, "a client's report that cannot be"});
    }
    return index_growth_.OnHeartbeat(connection, request.header);
  }
  if (!admission_.Admit(connection, request)) return;
  if ((request.header.flags & kUnderLock) && !lock_requests_.MayWriteUnder(*connection, request)) {
    return replies_.Answer(connection, LockLost(request, lock_requests_));
  }
  switch (static_cast<Opcode>(request.header.opcode)) {
    case Opcode::kPut:
      if (ValueElsewhere(request.header)) return long_values_.BeginPut(connection, request);
      return ExecuteWrite(connection, request);
    case Opcode::kLock:
    case Opcode::kUnlock:
    case Opcode::kExtendLock:
      return lock_requests_.Begin(connection, request);
    case Opcode::kGet:
    case Opcode::kStats:
    case Opcode::kListLocks:
    case Opcode::kStorage:
    case Opcode::kListClients:
    case Opcode::kSlowLog:
    case Opcode::kHeats:
    case Opcode::kMap:
    case Opcode::kItemLeases:
    case Opcode::kPing:
      return ExecuteWithValue(connection, request);
    case Opcode::kRails:
      if (AskOf(request.header) >= RailsAsk::kGivenUp)
        return admission_.AnswerGivenUp(connection, request.header);
      if (AskOf(request.header) == RailsAsk::kRailsInOrder && context_.rails.size() > 1) {
        admission_.BeginOrder(connection->session);
        lock_requests_.KeepLocksOf(connection->session);
      }
      return ExecuteWithValue(connection, request);
    default:
      return ExecuteWrite(connection, request);
  }
}

void Requests::ExecuteWrite(ServerConnection* connection, const RequestView& request) {
  if (store_.records()) [[unlikely]] {
    const ChangeOrigin origin = OriginOf(*connection->session, request.header);
    const Dispatcher::Written written = dispatcher_.Write(request, context_.now, &origin);
    ReplyHeader reply = PutOffIfBehind(store_, context_.server.changes, written.reply);
    if (IsPutOff(reply)) [[unlikely]]
      reply = admission_.PutOff(connection, request, reply.words[kPutOffMsWord]);
    return held_replies_.SendOrHold(connection, reply, written.ticket);
  }
  const ChangeOrigin none;
  Dispatcher::Written written = dispatcher_.Write(request, context_.now, &none);
  if (written.needs_value) [[unlikely]] {
    // The client sends it again, and all writes of the key that it sent behind it.
    tier_gets_.Bring(request.key);
    return replies_.Answer(connection, admission_.PutOff(connection, request, kBringMs));
  }
  if (IsPutOff(written.reply)) [[unlikely]]
    written.reply = admission_.PutOff(connection, request, written.reply.words[kPutOffMsWord]);
  held_replies_.SendOrHold(connection, written.reply, written.ticket);
}

// Looks up first, and takes a reply buffer only if the result needs one. A miss, or a value that is
// too long for a reply, needs none, so they are answered even if others hold all buffers.
void Requests::ExecuteWithValue(ServerConnection* connection, const RequestView& request) {
  const ReplyHeader reply = ExecuteInto(value_, *connection, request);
  const bool too_long = reply.status == static_cast<uint8_t>(ReplyStatus::kBufferTooSmall);
  if (too_long && FitsBuffer(request.header, reply)) {
    // Only what is on the disk has no slot.
    if (reply.get.slot == 0) return tier_gets_.Begin(connection, request.header, request.key);
    return long_values_.BeginGet(connection, request);
  }
  if (!too_long && reply.value_bytes > 0) return ReplyWithValue(connection, reply);
  replies_.Answer(connection, reply);
}

ReplyHeader Requests::ExecuteInto(std::span<std::byte> value_out,
                                  const ServerConnection& connection, const RequestView& request) {
  switch (static_cast<Opcode>(request.header.opcode)) {
    case Opcode::kGet:
    case Opcode::kPing:
      return dispatcher_.Read(request, value_out, context_.now);
    default:
      CountUpdates();  // before STATS reads the counters
      return observation_.List(connection, request.header, value_out);
  }
}

void Requests::ReplyWithValue(ServerConnection* connection, const ReplyHeader& reply) {
  const std::optional<uint32_t> buffer = replies_.TakeBuffer(*connection);
  if (!buffer) {
    // The client may retry when some replies have arrived.
    connection->session->Forget(reply.sequence);
    ReplyHeader again{};
    again.opcode = reply.opcode;
    again.status = static_cast<uint8_t>(ReplyStatus::kTryAgain);
    again.sequence = reply.sequence;
    return replies_.Send(connection, again);
  }
  Replies::Record(connection->session, reply);
  replies_.SendInBuffer(connection, *buffer, reply, value_.data());
}

}  // namespace gannet
