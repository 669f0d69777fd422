// The way of a GET to the disk and back. What a read gives was the key's value when its GET found
// the stub, whatever happened meanwhile. So it is the answer, and nobody looks at the key again.
// Only who finds nothing does: a miss is told behind the deletion of the stub that led there.

#include "server/rpc/tier_gets.h"

#include <utility>

#include "server/memory/store/stubs.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/long_values.h"

namespace gannet {

void TierGets::Begin(ServerConnection* connection, const RequestHeader& header,
                     std::string_view key) {
  Replies::BeginLong(connection, header);
  // With the other half of its credits, the session gets what is in memory.
  const uint32_t waiting = WaitingOf(*connection);
  const bool too_many = waiting > 0 && 2 * (waiting + 1) > connection->session->credits();
  if (too_many || busy() >= kGetsMax) {
    return replies_.AnswerLong(connection, ReplyTo(header, ReplyStatus::kTryAgain));
  }
  ++connection->tier_gets;
  context_.timers.RunBy(context_.now.boot + kLongWaitNs);
  Look(connection, Add({.connection = connection->id,
                        .header = header,
                        .key = std::string(key),
                        .began = context_.now.boot}));
}

uint32_t TierGets::WaitingOf(const ServerConnection& connection) const {
  if (connection.session->connections == 1) return connection.tier_gets;
  uint32_t waiting = 0;
  for (const auto& [id, other] : context_.connections) {
    if (other->session == connection.session) waiting += other->tier_gets;
  }
  return waiting;
}

uint32_t TierGets::Add(Get get) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(gets_.size()));
    gets_.emplace_back();
  }
  const uint32_t number = free_.back();
  free_.pop_back();
  gets_[number] = std::move(get);
  return number;
}

void TierGets::Bring(std::string_view key) {
  if (busy() >= kGetsMax) return;
  const uint32_t number = Add({.brings = true, .key = std::string(key)});
  Get& get = gets_[number];
  get.found = context_.server.store.Get(key, {}, context_.now.server_time);
  TierReads::Begun begun = TierReads::Begun::kNoMemory;
  if (get.found.on_disk)
    begun = context_.server.tier_reads->Begin(*get.found.on_disk, key, {context_.index, number});
  if (begun == TierReads::Begun::kYes) return;
  if (begun == TierReads::Begun::kTaken) DeleteStub(get);
  Remove(number);
}

void TierGets::BringBack(const Get& get, std::string_view value) const {
  Store& store = context_.server.store;
  const auto room = store.Reserve(get.key, value, context_.now.server_time);
  if (room) {
    store.stubs()->ReplaceByItem(store.HashOf(get.key), *get.found.on_disk, get.key, room->offset);
  }
}

void TierGets::Remove(uint32_t number) {
  gets_[number] = {};
  free_.push_back(number);
}

void TierGets::Look(ServerConnection* connection, uint32_t number) {
  Get& get = gets_[number];
  while (get.looks++ < kLooksMax) {
    get.found = context_.server.store.Get(get.key, {}, context_.now.server_time);
    if (!get.found.on_disk) {
      // It changed since somebody saw a stub. It goes on as any other GET.
      const Get other = std::move(get);
      Remove(number);
      --connection->tier_gets;
      connection->RemoveInProgress(other.header.sequence);
      return long_values_.BeginGet(connection, {other.header, other.key, {}});
    }
    if (get.header.get.buffer_bytes < get.found.value_bytes)
      return End(connection, number, ReplyOfRead(get.header, get.found));
    switch (
        context_.server.tier_reads->Begin(*get.found.on_disk, get.key, {context_.index, number})) {
      case TierReads::Begun::kYes:
        return;
      case TierReads::Begun::kNoMemory:
        return End(connection, number, ReplyTo(get.header, ReplyStatus::kTryAgain));
      case TierReads::Begun::kTaken:
        if (!DeleteStub(get)) continue;
        return End(connection, number, ReplyTo(get.header, ReplyStatus::kNotFound));
    }
  }
  End(connection, number, ReplyTo(get.header, ReplyStatus::kTryAgain));
}

bool TierGets::DeleteStub(const Get& get) const {
  Store& store = context_.server.store;
  return store.stubs()->Delete(store.HashOf(get.key), *get.found.on_disk);
}

void TierGets::TakeDone() {
  for (const TierReads::Done& done : context_.server.tier_reads->TakeDone(context_.index))
    OnDone(done);
}

void TierGets::OnDone(const TierReads::Done& done) {
  const auto number = static_cast<uint32_t>(done.tag);
  Get& get = gets_[number];
  get.read = done.read;
  if (get.brings) {
    if (done.value.ok()) {
      BringBack(get, *done.value);
    } else {
      DeleteStub(get);
    }
    return Give(number);
  }
  ServerConnection* const connection = context_.connections.FindOpen(get.connection);
  if (connection == nullptr) return Give(number);
  if (done.value.ok()) {
    get.value = *done.value;
    if (!SendValue(connection, number)) Give(number);
    return;
  }
  context_.server.tier_reads->Give(done.read);
  if (!DeleteStub(get)) return Look(connection, number);
  End(connection, number, ReplyTo(get.header, ReplyStatus::kNotFound));
}

bool TierGets::SendValue(ServerConnection* connection, uint32_t number) {
  const Get& get = gets_[number];
  const std::string_view value = get.value;
  const ibv_sge sge{reinterpret_cast<uint64_t>(value.data()), static_cast<uint32_t>(value.size()),
                    context_.server.rails[connection->rail].tier_lkey};
  if (!replies_.batch().AddWrite(connection, sge, get.header.get.buffer_address,
                                 get.header.get.buffer_rkey, {Resource::Kind::kTierGet, number})) {
    return false;
  }
  // The slot is 0, so the client remembers no place.
  ReadOutcome outcome = get.found;
  outcome.status = ReplyStatus::kOk;
  ReplyHeader reply = ReplyOfRead(get.header, outcome);
  reply.get.value_in_buffer = 1;
  Answer(connection, get, reply);
  return true;
}

void TierGets::Answer(ServerConnection* connection, const Get& get, const ReplyHeader& reply) {
  --connection->tier_gets;
  replies_.AnswerLong(connection, reply);
  context_.slow_requests.NoteIfSlow(*connection, get.header, get.key,
                                    context_.now.boot - get.began);
}

void TierGets::End(ServerConnection* connection, uint32_t number, const ReplyHeader& reply) {
  Answer(connection, gets_[number], reply);
  Remove(number);
}

bool TierGets::IsInTheWay(const ServerConnection& connection, const Get& get) {
  const Session& session = *connection.session;
  return session.highest() >= get.header.sequence + session.credits() / 2;
}

// Whose wait ends here has its place until the read is done, as if its connection were gone.
BootTime TierGets::EndLongWaits() {
  bool ended = false;
  BootTime next = BootTime::Never();
  for (Get& get : gets_) {
    ServerConnection* const connection =
        get.value.empty() ? context_.connections.FindOpen(get.connection) : nullptr;
    if (connection == nullptr) continue;
    if (context_.now.boot - get.began < kLongWaitNs || !IsInTheWay(*connection, get)) {
      next = context_.now.boot + kLongWaitNs;
      continue;
    }
    Answer(connection, get, ReplyTo(get.header, ReplyStatus::kTryAgain));
    get.connection = 0;
    ended = true;
  }
  if (ended) replies_.batch().Flush();
  return next;
}

// A value is promoted when its client has it.
void TierGets::Give(uint32_t number) {
  const Get& get = gets_[number];
  if (!get.value.empty()) {
    Store& store = context_.server.store;
    store.stubs()->Promote(store.HashOf(get.key), *get.found.on_disk, get.key, get.value);
  }
  context_.server.tier_reads->Give(get.read);
  Remove(number);
}

}  // namespace gannet
