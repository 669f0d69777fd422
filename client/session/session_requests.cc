// Requests under their numbers: sent, sent again on the next connection, answered, or given up.
// Two of them are the session's own, the questions for the map and for leases on items: nobody
// waits for these, so a lost connection ends them, and they are asked anew.

#include "client/session/session_requests.h"

#include <algorithm>
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
// The map and the leases are asked for anew.
void SessionRequests::Resend(int64_t now_ns) {
  window_.ForEachUnanswered([&](RequestWindow::Entry& entry) {
    if (entry.op >= kItemLeasesOp) {
      (*given_.memory)->ReturnLent(entry);
      window_.End(entry);
      return;
    }
    Add(entry, now_ns);
  });
  given_.sends->Post();
}

void SessionRequests::BeginAnew(uint16_t credits, std::vector<uint32_t>* abandoned) {
  window_.ForEachUnanswered([&](RequestWindow::Entry& entry) {
    if (entry.op < kItemLeasesOp) abandoned->push_back(entry.op);
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

void SessionRequests::SendMapQuestion(int64_t now_ns) {
  GANNET_CHECK(asks_for_map() && CanSend(), "the map is not asked for, or there is no credit");
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kMap);
  header.list.position = *std::exchange(map_position_, std::nullopt);
  Send({.header = header, .key = {}, .value = {}}, {.op = kMapOp}, now_ns);
  given_.sends->Post();
}

void SessionRequests::SendItemLeasesQuestion(int64_t now_ns) {
  GANNET_CHECK(asks_for_item_leases() && CanSend(), "leases are not asked for, or no credit");
  asks_for_item_leases_ = false;
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kItemLeases);
  Send({.header = header, .key = {}, .value = {}}, {.op = kItemLeasesOp}, now_ns);
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
  if (answered.op < kItemLeasesOp) [[likely]] {
    given_.reports->OnReply(&answered, reply);
  } else if (answered.op == kMapOp) {
    given_.reports->OnMapReply(reply);
  } else if (answered.op == kItemLeasesOp) {
    item_leases_ = ItemLeasesIn(reply);
  }
  (*given_.memory)->ReturnLent(answered);
  return true;
}

}  // namespace gannet
