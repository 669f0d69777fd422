// Requests under their numbers: sent, sent again on the next connection, answered, or given up.
// Some of them are the session's own: questions for the map, leases on items, and rails. Nobody
// waits for these, so a lost connection ends them, and they are asked anew.

#include "client/session/session_requests.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/data_path_checks.h"

namespace gannet {
namespace {

// Returns where the leases are, by the server's answer; no words if it has none.
ItemLeasesReply ItemLeasesIn(const ReplyView& reply) {
  if (reply.header.status != static_cast<uint8_t>(ReplyStatus::kOk)) return {};
  return DecodeItemLeases(reply.value);
}

}  // namespace

// The server answers from its record what it did before. A request that nobody waits for any more
// is not sent again. So a request that the server cannot answer holds up only one connection.
// The session's own questions are asked anew.
void SessionRequests::Resend(int64_t now_ns) {
  const uint32_t domain = (*given_.memory)->first->domain;
  const uint32_t former = std::exchange(domain_, domain);
  window_.ForEachUnanswered([&](RequestWindow::Entry& entry) {
    if (entry.op >= kOpsEnd) {
      (*given_.memory)->ReturnLent(entry);
      window_.End(entry);
      return;
    }
    if (domain != former) NameMemoryAnew(entry, former, domain);
    Add(entry, now_ns);
  });
  given_.sends->Post();
}

// Puts the keys of another domain into an encoded request.
void SessionRequests::NameMemoryAnew(const RequestWindow::Entry& entry, uint32_t former,
                                     uint32_t domain) const {
  const SessionMemory& memory = **given_.memory;
  std::byte* const message = memory.request(window_.IndexOf(entry.sequence));
  const auto put = [&](size_t offset) {
    uint32_t rkey = 0;
    std::memcpy(&rkey, message + offset, sizeof(rkey));
    rkey = memory.domains->RkeyIn(domain, former, rkey);
    std::memcpy(message + offset, &rkey, sizeof(rkey));
  };
  RequestHeader header;
  std::memcpy(&header, message, sizeof(header));
  if ((header.flags & kValueInBuffer) != 0) {
    const bool gets = header.opcode == static_cast<uint8_t>(Opcode::kGet);
    put(gets ? offsetof(RequestHeader, get.buffer_rkey)
             : offsetof(RequestHeader, write.buffer_rkey));
  } else if ((header.flags & kValueInSegments) != 0) {
    const size_t segments = sizeof(header) + header.key_bytes;
    for (uint32_t i = 0; i < header.write.segments; ++i)
      put(segments + i * sizeof(ValueSegment) + offsetof(ValueSegment, rkey));
  }
}

void SessionRequests::BeginAnew(uint16_t credits, std::vector<uint32_t>* abandoned) {
  domain_ = (*given_.memory)->first->domain;
  window_.ForEachUnanswered([&](RequestWindow::Entry& entry) {
    if (entry.op < kOpsEnd) abandoned->push_back(entry.op);
    (*given_.memory)->ReturnLent(entry);
    window_.End(entry);
  });
  window_.Restart(std::min(credits, RequestWindow::kCreditsMax));
}

uint64_t SessionRequests::Send(RequestView request, RequestWindow::Entry entry, int64_t now_ns) {
  GANNET_CHECK_DATA_PATH(CanSend(), "there is no room or no credit for a request");
  request.header.sequence = entry.sequence = window_.next();
  std::byte* const message = (*given_.memory)->request(window_.IndexOf(entry.sequence));
  entry.bytes = static_cast<uint32_t>(
      EncodeRequest(request.header, request.key, request.value, {message, kMessageBytesMax}));
  watch_.OnSend(window_, *given_.watched);
  Add(window_.Begin(entry), now_ns);
  return entry.sequence;
}

void SessionRequests::SendQuestions(int64_t now_ns) {
  if (map_position_.has_value() && CanSend())
    SendQuestion(Opcode::kMap, *std::exchange(map_position_, std::nullopt), kMapOp, now_ns);
  if (asks_for_item_leases_ && CanSend()) {
    asks_for_item_leases_ = false;
    SendQuestion(Opcode::kItemLeases, 0, kItemLeasesOp, now_ns);
  }
  if (asks_for_rails_ && CanSend()) {
    asks_for_rails_ = false;
    SendQuestion(Opcode::kRails, 0, kRailsOp, now_ns);
  }
}

void SessionRequests::SendQuestion(Opcode opcode, uint64_t position, uint32_t op, int64_t now_ns) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  if (opcode == Opcode::kMap) header.list.position = position;
  Send({.header = header, .key = {}, .value = {}}, {.op = op}, now_ns);
  given_.sends->Post();
}

void SessionRequests::Add(RequestWindow::Entry& entry, int64_t now_ns) {
  given_.sends->AddRequest(entry, (*given_.memory)->request(window_.IndexOf(entry.sequence)),
                           now_ns);
}

const RequestWindow::Entry* SessionRequests::IgnoreAnswer(uint64_t sequence, uint32_t op) {
  RequestWindow::Entry* entry = window_.Find(sequence);
  if (entry == nullptr || entry->op != op) return nullptr;
  entry->op = kInvalidOp;
  return entry;
}

bool SessionRequests::TakeAnswer(const ReplyView& reply) {
  RequestWindow::Entry* entry = window_.Find(reply.header.sequence);
  if (entry == nullptr) return false;
  watch_.OnAnswer(*given_.watched);
  RequestWindow::Entry answered = *entry;
  window_.End(*entry);
  if (answered.op < kOpsEnd) [[likely]] {
    given_.reports->OnReply(&answered, reply);
  } else if (answered.op == kMapOp) {
    given_.reports->OnMapReply(reply);
  } else if (answered.op == kItemLeasesOp) {
    item_leases_ = ItemLeasesIn(reply);
  } else if (answered.op == kRailsOp) {
    const bool ok = reply.header.status == static_cast<uint8_t>(ReplyStatus::kOk);
    rails_ = ok ? DecodeRails(reply.value) : RailsReply{};
  }
  (*given_.memory)->ReturnLent(answered);
  return true;
}

}  // namespace gannet
