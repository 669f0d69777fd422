#include "server/rpc/dispatcher.h"

#include <cstring>

namespace gannet {

ReplyHeader ReplyOfRead(const RequestHeader& request, const ReadOutcome& outcome) {
  ReplyHeader reply = ReplyTo(request, outcome.status);
  if (outcome.status == ReplyStatus::kNotFound) return reply;
  reply.value_bytes = outcome.value_bytes;
  reply.get = {.version = outcome.version,
               .slot = outcome.slot,
               .expiry_ms = outcome.attributes.expiry.ms(),
               .user_flags = outcome.attributes.flags};
  return reply;
}

ReplyHeader Dispatcher::Read(const RequestView& request, std::span<std::byte> value_out,
                             const Now& now) {
  const RequestHeader& header = request.header;
  switch (static_cast<Opcode>(header.opcode)) {
    case Opcode::kHeartbeat:
    case Opcode::kPing:
      return ReplyWithTime(header, store_->Now(now.server_time));
    case Opcode::kGet:
      return Get(request, value_out, now);
    default:
      return ReplyTo(header, ReplyStatus::kUnimplemented);
  }
}

Dispatcher::Written Dispatcher::Write(const RequestView& request, const Now& now,
                                      const ChangeOrigin* origin) {
  if (request.header.opcode == static_cast<uint8_t>(Opcode::kFlush)) {
    return Flush(request.header, now);
  }
  Writes::Decided decided = Decide(request, now, origin);
  if (decided.outcome.needs_value) [[unlikely]] {
    // No number is as long as a value that goes to the disk.
    const bool increments = request.header.opcode == static_cast<uint8_t>(Opcode::kIncrement);
    if (!increments) return {.reply = {}, .needs_value = true};
    decided.outcome = {.status = ReplyStatus::kNotANumber};
  }
  return {ReplyOfWrite(request.header, decided.outcome), decided.ticket};
}

// DecodeRequest checked that an INCREMENT has operands.
Writes::Decided Dispatcher::Decide(const RequestView& request, const Now& now,
                                   const ChangeOrigin* origin) {
  const ItemAttributes made = AttributesOf(request.header, *store_, now.server_time);
  const WriteConditions conditions = ConditionsOf(request.header, origin);
  switch (static_cast<Opcode>(request.header.opcode)) {
    case Opcode::kPut:
      return writes_->Put(request.key, request.value, made, conditions, now.server_time);
    case Opcode::kDelete:
      return writes_->Delete(request.key, conditions, now.server_time);
    case Opcode::kAppend:
      return writes_->Append(request.key, request.value, Writes::End::kBack, made, conditions,
                             now.server_time);
    case Opcode::kPrepend:
      return writes_->Append(request.key, request.value, Writes::End::kFront, made, conditions,
                             now.server_time);
    case Opcode::kIncrement: {
      CounterOperands operands;
      std::memcpy(&operands, request.value.data(), sizeof(operands));
      return writes_->Increment(request.key, operands, made, conditions, now.server_time);
    }
    case Opcode::kTouch:
      return writes_->Touch(request.key, made.expiry, conditions, now.server_time);
    default:
      return {.outcome = {.status = ReplyStatus::kUnimplemented}};
  }
}

Dispatcher::Written Dispatcher::Flush(const RequestHeader& header, const Now& now) {
  const Writes::Flushed flushed = writes_->FlushSome(header.flush.position, now.server_time);
  // What was done so far is told. The next step is refused or put off by itself.
  const bool stuck = flushed.next <= header.flush.position;
  if (flushed.wait_ms != 0 && stuck) {
    return {ReplyTo(header, ReplyStatus::kTryAgain), flushed.ticket};
  }
  const bool refused = flushed.refused && stuck;
  ReplyHeader reply = ReplyTo(header, refused ? ReplyStatus::kDiskRefuses : ReplyStatus::kOk);
  reply.flush = {.next = flushed.next, .removed = flushed.removed};
  return {reply, flushed.ticket};
}

ReplyHeader Dispatcher::Get(const RequestView& request, std::span<std::byte> value_out,
                            const Now& now) {
  return ReplyOfRead(request.header, store_->Get(request.key, value_out, now.server_time));
}

}  // namespace gannet
