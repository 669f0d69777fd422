#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "server/rpc/serve_update.h"
#include "server/rpc/work_kind.h"
#include "server/rpc/worker.h"

namespace gannet {
namespace {

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

}  // namespace

// Works in three steps, each for all requests that arrived, so that each step prefetches the
// store's memory for the next one. If the store is larger than the caches, these cache misses are
// most of a request's time.
size_t Worker::PollCompletions(size_t most) {
  std::array<ibv_wc, kPollMax> completions;
  std::array<Received, kPollMax> received;
  const size_t n = cq_->Poll(std::span(completions).first(most));
  Received* end = received.data();
  for (const ibv_wc& completion : std::span(completions).first(n)) {
    end += OnCompletion(completion, end);
  }
  for (Received* request = received.data(); request != end; ++request) {
    store_->GuessItem(&request->guess);
  }
  timed_until_ns_ = 0;
  if (store_->records()) [[unlikely]] {
    ServeRecorded({received.data(), end});
    return n;
  }
  for (Received* request = received.data(); request != end; ++request) {
    if (!ServeUpdate<false>(*request)) OnMessage(request->connection, request->message());
  }
  if (store_->evicts()) [[unlikely]]
    NoteUpdates({received.data(), end});
  return n;
}

// Returns true and fills in `received` if the completion is a request. Handles any other completion
// at once, before the requests that came with it, as if those had come a little later.
[[gnu::always_inline]] inline bool Worker::OnCompletion(const ibv_wc& completion,
                                                        Received* received) {
  const WrId id = WrId::Unpack(completion.wr_id);
  if (id.kind != static_cast<uint8_t>(WorkKind::kReceive)) [[unlikely]] {
    OnOtherCompletion(completion);
    return false;
  }
  ReceiveBuffers* const receives = receives_.get();
  receives->Recycle(id.slot);  // it is posted again at the end of this Poll
  ServerConnection* connection = FindOwner(completion);
  if (connection == nullptr) [[unlikely]]
    return false;
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    CloseConnection(connection, ibv_wc_status_str(completion.status));
    return false;
  }
  connection->heard_ns = now_.monotonic_ns;
  received->connection = connection;
  received->bytes = completion.byte_len;
  received->data = receives->Message(id.slot, completion.byte_len).data();
  store_->GuessBucket(PlainPut::KeyOf(received->data), &received->guess);
  return true;
}

void Worker::OnOtherCompletion(const ibv_wc& completion) {
  const WrId id = WrId::Unpack(completion.wr_id);
  switch (static_cast<WorkKind>(id.kind)) {
    case WorkKind::kSend:
      return OnSendDone(completion, id.slot);
    case WorkKind::kDrain:
      if (ServerConnection* connection = FindOwner(completion)) drained_.push_back(connection->id);
      return;
    case WorkKind::kReceive:
      break;
  }
  LOG(DFATAL) << "completion of unknown work " << completion.wr_id;
}

// Counts PUTs as uses. Done for all requests of a Poll at once, so that it costs those nothing if
// the store does not evict.
void Worker::NoteUpdates(std::span<const Received> received) {
  for (const Received& request : received) {
    PlainPut put;
    if (put.Decode(request.message())) store_->NoteUpdate(request.guess, put.key());
  }
}

void Worker::OnSendDone(const ibv_wc& completion, uint32_t position) {
  ServerConnection* connection = FindOwner(completion);
  counters_.send_completions.Add(1);
  if (connection == nullptr) return;
  const bool ok = completion.status == IBV_WC_SUCCESS;
  if (!ok) CloseConnection(connection, ibv_wc_status_str(completion.status));
  connection->send_queue.Complete(position,
                                  [&](Resource resource) { Release(connection, resource, ok); });
  if (!connection->closing) PostReads(connection);
}

void Worker::Release(ServerConnection* connection, Resource resource, bool ok) {
  switch (resource.kind) {
    case Resource::Kind::kNothing:
      break;
    case Resource::Kind::kReplyBuffer:
      replies_.Give(resource.index);
      --connection->reply_buffers;
      break;
    case Resource::Kind::kStaging:
      staging_.Give(resource.index);
      --connection->staging_buffers;
      break;
    case Resource::Kind::kRead:
      OnRead(connection, resource.index, ok);
      break;
  }
}

void Worker::OnMessage(ServerConnection* connection, std::span<const std::byte> message) {
  if (!connection->ordinary) [[unlikely]] {
    if (connection->closing) return TakeLastNews(connection->session, message);
    if (RefuseWrite(connection, message)) return;
  }
  if (message.size() < sizeof(RequestHeader)) {
    return CloseConnection(connection, "a message shorter than a header");
  }
  RequestView request;
  const std::optional<RequestError> error = DecodeRequest(message, &request);
  const bool heartbeat = IsHeartbeat(request.header);
  if (TooManyUnanswered(*connection)) {
    return CloseConnection(connection, "more requests unanswered than credits");
  }
  ++connection->unanswered;
  (heartbeat ? counters_.heartbeats : counters_.rpcs).Add(1);
  served_ |= !heartbeat;
  if (error) return Refuse(connection, request.header, *error);
  counters_.by_opcode[request.header.opcode].Add(1);
  if (node_->slow_log != nullptr && !heartbeat) return OnTimedRequest(connection, request);
  OnRequest(connection, request);
}

// Refuses a request of a session that may only read, unless it changes nothing. Returns false if
// OnMessage is to treat the message as any other: it is a read, or malformed.
bool Worker::RefuseWrite(ServerConnection* connection, std::span<const std::byte> message) {
  RequestView request;
  if (message.size() < sizeof(RequestHeader) || DecodeRequest(message, &request) ||
      ChangesNothing(request.header) || TooManyUnanswered(*connection)) {
    return false;
  }
  ++connection->unanswered;
  counters_.rpcs.Add(1);
  served_ = true;
  if (!Admit(connection, request.header)) return true;
  const ReplyHeader reply = ReplyTo(request.header, ReplyStatus::kPermissionDenied);
  Record(connection->session, reply);
  Reply(connection, reply);
  return true;
}

void Worker::OnRequest(ServerConnection* connection, const RequestView& request) {
  if (IsHeartbeat(request.header)) {
    OnServerSet(connection, request.header.heartbeat.server_set);
    if (!request.value.empty() && !TakeNews(connection->session, request)) {
      return Refuse(connection, request.header,
                    {ReplyStatus::kInvalidArgument, "a client's report that cannot be"});
    }
    return OnHeartbeat(connection, request.header);
  }
  if (!Admit(connection, request.header)) return;
  if ((request.header.flags & kUnderLock) &&
      !OwnsLock(*connection, LockWord(request.header.write.lock_word))) {
    return RefuseLock(connection, request);
  }
  switch (static_cast<Opcode>(request.header.opcode)) {
    case Opcode::kPut:
      if (ValueElsewhere(request.header)) return BeginLargePut(connection, request);
      return ExecuteWrite(connection, request);
    case Opcode::kLock:
    case Opcode::kUnlock:
    case Opcode::kExtendLock:
      return BeginLock(connection, request);
    case Opcode::kGet:
    case Opcode::kStats:
    case Opcode::kListLocks:
    case Opcode::kStorage:
    case Opcode::kListClients:
    case Opcode::kSlowLog:
    case Opcode::kHeats:
    case Opcode::kPing:
      return ExecuteWithValue(connection, request);
    default:
      return ExecuteWrite(connection, request);
  }
}

bool Worker::Admit(ServerConnection* connection, const RequestHeader& header) {
  ReplyHeader recorded;
  const Session::Admission admission = connection->session->Admit(header.sequence, &recorded);
  if (admission == Session::Admission::kExecute) [[likely]]
    return true;
  return AdmitAgain(connection, header, admission, recorded);
}

bool Worker::AdmitAgain(ServerConnection* connection, const RequestHeader& header,
                        Session::Admission admission, ReplyHeader recorded) {
  if (admission == Session::Admission::kInProgress) {
    // The client believes that another of its connections is broken, and may be right. Gives up the
    // copy on that connection, and executes this one.
    CloseExecutorOf(connection, header.sequence);
    if (RedirectWaiting(connection, header.sequence)) return false;
    admission = connection->session->Admit(header.sequence, &recorded);
  }
  switch (admission) {
    case Session::Admission::kExecute:
      return true;
    case Session::Admission::kReplay:
      Reply(connection, recorded);
      return false;
    case Session::Admission::kStale:
      Refuse(connection, header,
             {ReplyStatus::kInvalidArgument, "a sequence number below the credits"});
      return false;
    case Session::Admission::kInProgress:
      CloseConnection(connection, "a request sent twice on one connection");
      return false;
    case Session::Admission::kOverrun:
      CloseConnection(connection, "a sequence number beyond the credits");
      return false;
  }
  return false;
}

void Worker::CloseExecutorOf(const ServerConnection* asking, uint64_t sequence) {
  for (const auto& [id, other] : connections_) {
    if (other.get() != asking && other->session == asking->session &&
        other->IsInProgress(sequence)) {
      return CloseConnection(other.get(), "its client sent a request again elsewhere");
    }
  }
}

// Looks up first, and takes a reply buffer only if the result needs one. A miss, or a value that is
// too long for a reply, needs none, so they are answered even if others hold all buffers.
void Worker::ExecuteWithValue(ServerConnection* connection, const RequestView& request) {
  const ReplyHeader reply = ExecuteInto(value_, request);
  const bool too_long = reply.status == static_cast<uint8_t>(ReplyStatus::kBufferTooSmall);
  if (too_long && FitsBuffer(request.header, reply)) return BeginLargeGet(connection, request);
  if (!too_long && reply.value_bytes > 0) return ReplyWithValue(connection, reply);
  Record(connection->session, reply);
  Reply(connection, reply);
}

ReplyHeader Worker::ExecuteInto(std::span<std::byte> value_out, const RequestView& request) {
  switch (static_cast<Opcode>(request.header.opcode)) {
    case Opcode::kListLocks:
      return ListLocks(request.header, value_out);
    case Opcode::kStorage:
    case Opcode::kListClients:
    case Opcode::kSlowLog:
    case Opcode::kHeats:
      return ListForPeople(request.header, value_out);
    default:
      break;
  }
  CountUpdates();  // before STATS reads the counters
  return dispatcher_.Read(request, value_out, now_);
}

void Worker::ReplyWithValue(ServerConnection* connection, const ReplyHeader& reply) {
  std::optional<uint32_t> buffer;
  if (replies_.MayTake(connection->reply_buffers)) buffer = replies_.Take();
  if (!buffer) {
    // The connection holds its share of the buffers, or all are on their way to clients. The client
    // may retry when some have arrived.
    connection->session->Forget(reply.sequence);
    ReplyHeader again{};
    again.opcode = reply.opcode;
    again.status = static_cast<uint8_t>(ReplyStatus::kTryAgain);
    again.sequence = reply.sequence;
    return Reply(connection, again);
  }
  Record(connection->session, reply);
  const std::span<std::byte> bytes = replies_.Bytes(*buffer);
  std::memcpy(bytes.data(), &reply, sizeof(reply));
  std::memcpy(bytes.data() + sizeof(reply), value_.data(), reply.value_bytes);
  if (batch_.AddReply(connection, *buffer, sizeof(reply) + reply.value_bytes)) {
    ++connection->answers_in_chain;
  }
}

void Worker::OnServerSet(ServerConnection* connection, uint64_t server_set) {
  Session* const session = connection->session;
  if (server_set == 0 || server_set == session->server_set) return;
  session->server_set = server_set;
  const auto holder = node_->connection_ids->HolderOf(connection->id);
  const char* const peer = holder->peer.data();
  node_->server_sets->Tell(session->id(), server_set,
                           std::string(peer, strnlen(peer, holder->peer.size())));
}

void Worker::RefuseLock(ServerConnection* connection, const RequestView& request) {
  ReplyHeader reply = ReplyTo(request.header, ReplyStatus::kLockLost);
  // The reply to an increment has no place for it.
  if (reply.opcode != static_cast<uint8_t>(Opcode::kIncrement)) {
    reply.write.lock_word = LockWordNow(request.key);
  }
  Record(connection->session, reply);
  Reply(connection, reply);
}

void Worker::Record(Session* session, const ReplyHeader& reply) {
  if (IsRepeatable(static_cast<Opcode>(reply.opcode))) {
    session->RecordRepeatable(reply.sequence);
  } else if (reply.status == static_cast<uint8_t>(ReplyStatus::kTryAgain)) {
    // Not applied, so it must be executed if it is sent again under the same number.
    session->Forget(reply.sequence);
  } else {
    session->RecordAnswer(reply.sequence, reply);
  }
}

void Worker::Reply(ServerConnection* connection, const ReplyHeader& reply) {
  ReplyHeader* header = batch_.AddHeader(connection);
  if (header == nullptr) return;
  *header = reply;
  ++connection->answers_in_chain;
}

// No client of this version sends such a request. The log says more than the status, for the person
// who looks for the cause.
void Worker::Refuse(ServerConnection* connection, const RequestHeader& header, RequestError error) {
  counters_.refused_requests.Add(1);
  node_->LogRefusal(&node_->log->refused_requests, now_.monotonic_ns,
                    absl::StrCat("request ", header.sequence, " of connection ", connection->id),
                    error.reason);
  Reply(connection, ReplyTo(header, error.status));
}

void Worker::BeginLong(ServerConnection* connection, const RequestHeader& header) {
  connection->in_progress.push_back(header.sequence);
}

void Worker::AnswerLong(ServerConnection* connection, const ReplyHeader& reply) {
  connection->RemoveInProgress(reply.sequence);
  Record(connection->session, reply);
  Reply(connection, reply);
}

}  // namespace gannet
