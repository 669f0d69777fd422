#include "server/rpc/dispatcher.h"

#include <cstring>

namespace gannet {

ReplyHeader ReplyOfRead(const RequestHeader& request, const ReadOutcome& outcome) {
  ReplyHeader reply = ReplyTo(request, outcome.status);
  if (outcome.status == ReplyStatus::kNotFound) return reply;
  reply.version = outcome.version;
  reply.slot = outcome.slot;
  reply.value_bytes = outcome.value_bytes;
  reply.user_flags = outcome.attributes.flags;
  reply.expiry_ms = outcome.attributes.expiry_ms;
  return reply;
}

ReplyHeader Dispatcher::Execute(const RequestView& request, std::span<std::byte> value_out,
                                const Now& now) {
  const RequestHeader& header = request.header;
  switch (static_cast<Opcode>(header.opcode)) {
    case Opcode::kHeartbeat:
    case Opcode::kPing:
      return ReplyWithTime(header, now);
    case Opcode::kGet:
      return Get(request, value_out, now);
    case Opcode::kPut:
      return Put(request, now);
    case Opcode::kDelete:
      return ReplyOfWrite(header, store_->Delete(request.key, ConditionsOf(header), now.wall_ms));
    case Opcode::kStats:
      return Stats(header, value_out, now);
    case Opcode::kLock:
    case Opcode::kUnlock:
    case Opcode::kExtendLock:
    case Opcode::kListLocks:
      break;
  }
  return ReplyTo(header, ReplyStatus::kUnimplemented);
}

ReplyHeader Dispatcher::Put(const RequestView& request, const Now& now) {
  const RequestHeader& header = request.header;
  return ReplyOfWrite(header,
                      store_->Put(request.key, request.value, AttributesOf(header, now.wall_ms),
                                  ConditionsOf(header), now.wall_ms));
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
