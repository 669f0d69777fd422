#include "server/rpc/dispatcher.h"

#include <cstring>

namespace gannet {

ReplyHeader ReplyOfRead(const RequestHeader& request, const ReadOutcome& outcome) {
  ReplyHeader reply = ReplyTo(request, outcome.status);
  if (outcome.status == ReplyStatus::kNotFound) return reply;
  reply.value_bytes = outcome.value_bytes;
  reply.get = {.version = outcome.version,
               .slot = outcome.slot,
               .expiry_ms = outcome.attributes.expiry_ms,
               .user_flags = outcome.attributes.flags};
  return reply;
}

ReplyHeader ReplyOfFlush(const RequestHeader& request, const FlushOutcome& flushed) {
  ReplyHeader reply =
      ReplyTo(request, flushed.refused ? ReplyStatus::kDiskRefuses : ReplyStatus::kOk);
  reply.flush = {.next = flushed.next, .removed = flushed.removed};
  return reply;
}

ReplyHeader Dispatcher::Execute(const RequestView& request, std::span<std::byte> value_out,
                                const Now& now, const ChangeOrigin* origin) {
  const RequestHeader& header = request.header;
  switch (static_cast<Opcode>(header.opcode)) {
    case Opcode::kHeartbeat:
    case Opcode::kPing:
      return ReplyWithTime(header, store_->NowMs(now.wall_ms));
    case Opcode::kGet:
      return Get(request, value_out, now);
    case Opcode::kPut:
      return Put(request, now, origin);
    case Opcode::kDelete:
      return ReplyOfWrite(header,
                          store_->Delete(request.key, ConditionsOf(header, origin), now.wall_ms));
    case Opcode::kAppend:
    case Opcode::kPrepend:
    case Opcode::kIncrement:
    case Opcode::kTouch:
      return ReplyOfWrite(header, Modify(request, now, origin));
    case Opcode::kFlush:
      return Flush(header);
    case Opcode::kStats:
      return Stats(header, value_out, now);
    case Opcode::kLock:
    case Opcode::kUnlock:
    case Opcode::kExtendLock:
    case Opcode::kListLocks:
    case Opcode::kStorage:
    case Opcode::kListClients:
    case Opcode::kSlowLog:
    case Opcode::kHeats:
      break;
  }
  return ReplyTo(header, ReplyStatus::kUnimplemented);
}

ReplyHeader Dispatcher::Put(const RequestView& request, const Now& now,
                            const ChangeOrigin* origin) {
  const RequestHeader& header = request.header;
  return ReplyOfWrite(
      header, store_->Put(request.key, request.value, AttributesOf(header, *store_, now.wall_ms),
                          ConditionsOf(header, origin), now.wall_ms));
}

// DecodeRequest checked that an INCREMENT has operands.
WriteOutcome Dispatcher::Modify(const RequestView& request, const Now& now,
                                const ChangeOrigin* origin) {
  const RequestHeader& header = request.header;
  const ItemAttributes made = AttributesOf(header, *store_, now.wall_ms);
  const WriteConditions conditions = ConditionsOf(header, origin);
  switch (static_cast<Opcode>(header.opcode)) {
    case Opcode::kAppend:
      return store_->Append(request.key, request.value, Store::End::kBack, made, conditions,
                            now.wall_ms);
    case Opcode::kPrepend:
      return store_->Append(request.key, request.value, Store::End::kFront, made, conditions,
                            now.wall_ms);
    case Opcode::kIncrement: {
      CounterOperands operands;
      std::memcpy(&operands, request.value.data(), sizeof(operands));
      return store_->Increment(request.key, operands, made, conditions, now.wall_ms);
    }
    default:
      return store_->Touch(request.key, made.expiry_ms, conditions, now.wall_ms);
  }
}

ReplyHeader Dispatcher::Flush(const RequestHeader& header) {
  return ReplyOfFlush(header, store_->FlushSome(header.flush.position));
}

ReplyHeader Dispatcher::Get(const RequestView& request, std::span<std::byte> value_out,
                            const Now& now) {
  return ReplyOfRead(request.header, store_->Get(request.key, value_out, now.wall_ms));
}

ReplyHeader Dispatcher::Stats(const RequestHeader& header, std::span<std::byte> value_out,
                              const Now& now) {
  const StatsReply stats = stats_(now);
  std::memcpy(value_out.data(), &stats, sizeof(stats));
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  reply.value_bytes = sizeof(stats);
  return reply;
}

}  // namespace gannet
