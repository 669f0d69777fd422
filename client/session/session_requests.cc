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
    const RequestRails::Sent* const sent = SentOf(entry);
    const uint32_t named = sent != nullptr ? sent->domain : former;
    if (domain != named) NameMemoryAnew(entry, named, domain);
    Add(entry, now_ns);
  });
  by_rails_.Forget();
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
  by_rails_.Forget();
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
  if (asks_for_rails_.has_value() && CanSend()) {
    const auto ask = static_cast<uint64_t>(*std::exchange(asks_for_rails_, std::nullopt));
    SendQuestion(Opcode::kRails, ask, kRailsOp, now_ns);
  }
  if (lost_) SendLost(now_ns);
  if (!to_tell_.empty()) TellGivenUp(now_ns);
}

void SessionRequests::SendQuestion(Opcode opcode, uint64_t word, uint32_t op, int64_t now_ns) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  header.words[0] = word;
  Send({.header = header, .key = {}, .value = {}}, {.op = op}, now_ns);
  given_.sends->Post();
}

void SessionRequests::Add(RequestWindow::Entry& entry, int64_t now_ns) {
  if (by_rails_.several()) [[unlikely]] {
    AddByRails(entry, now_ns);
    return;
  }
  given_.sends->AddRequest(given_.connections->first(), entry,
                           (*given_.memory)->request(window_.IndexOf(entry.sequence)), now_ns);
}

// Adds it to the chain of the connection that it goes by. Returns false if none has room.
bool SessionRequests::AddByRails(RequestWindow::Entry& entry, int64_t now_ns) {
  const uint32_t place = window_.IndexOf(entry.sequence);
  std::byte* const message = (*given_.memory)->request(place);
  RequestHeader header;
  std::memcpy(&header, message, sizeof(header));
  const bool own = entry.op >= kOpsEnd && entry.op != kInvalidOp;
  ClientConnection* const to = by_rails_.Choose(header, own, window_);
  if (to == nullptr) return false;
  const RequestRails::Sent* const before = SentOf(entry);
  const uint32_t named = before != nullptr ? before->domain : domain_;
  if (to->domain != named) NameMemoryAnew(entry, named, to->domain);
  by_rails_.OnSent(place, entry.sequence, header, *to);
  given_.sends->AddRequest(*to, entry, message, now_ns);
  return true;
}

void SessionRequests::TakeLost(const ClientConnection& over) {
  window_.ForEachUnanswered([&](RequestWindow::Entry& entry) {
    RequestRails::Sent* const sent = SentOf(entry);
    if (sent != nullptr) TakeLost(entry, *sent, over.index);
  });
}

void SessionRequests::TakeLost(RequestWindow::Entry& entry, RequestRails::Sent& sent,
                               uint32_t over) {
  constexpr uint32_t kNowhere = RequestRails::kNowhere;
  if (sent.connection == over) {
    if (sent.server_knows) return EndUnwanted(entry);
    // What told the server is on its way, and stands for the request, unless it was answered that
    // this is under way.
    const uint32_t told_by = std::exchange(sent.told_by, kNowhere);
    sent.connection = sent.answers == 0 ? told_by : kNowhere;
    sent.answers = 0;
    lost_ |= sent.connection == kNowhere;
  } else if (sent.told_by == over) {
    to_tell_.push_back(entry.sequence);  // whoever is to tell it now
    if (sent.server_knows) return;
    sent.told_by = kNowhere;
    sent.answers = 0;
  }
}

// A request without effect goes instead of one that was given up. What that had lent is returned,
// as its connection is flushed.
void SessionRequests::SendLost(int64_t now_ns) {
  lost_ = false;
  window_.ForEachUnanswered([&](RequestWindow::Entry& entry) {
    const RequestRails::Sent* const sent = SentOf(entry);
    if (lost_ || sent == nullptr || sent->connection != RequestRails::kNowhere) return;
    if (entry.op == kInvalidOp) {
      (*given_.memory)->ReturnLent(entry);
      entry.value = entry.reply = {};
      const RequestHeader header = RequestRails::GivenUp(RailsAsk::kLost, entry.sequence);
      entry.bytes = sizeof(header);
      std::memcpy((*given_.memory)->request(window_.IndexOf(entry.sequence)), &header,
                  sizeof(header));
    }
    lost_ = !AddByRails(entry, now_ns);
  });
  given_.sends->Post();
}

// Tells the server by another connection: the one that has the request may be dead, and nobody
// knows yet. The request's buffer is not free, so this needs a device that takes it inline. Not so
// of a GET: what the server WRITEs for it may still arrive.
void SessionRequests::TellGivenUp(int64_t now_ns) {
  for (const uint64_t sequence : std::exchange(to_tell_, {})) {
    RequestWindow::Entry* const entry = window_.Find(sequence);
    if (entry == nullptr || entry->op != kInvalidOp || entry->reply.data != nullptr) continue;
    RequestRails::Sent* const sent = SentOf(*entry);
    if (sent == nullptr || sent->connection == RequestRails::kNowhere) continue;
    if (sent->server_knows) {
      // The connection that told is over, and one answer is there, of whichever it is.
      by_rails_.WasSent(*sent) ? EndUnwanted(*entry) : to_tell_.push_back(sequence);
      continue;
    }
    ClientConnection* const other = by_rails_.Other(sent->connection);
    RequestHeader header = RequestRails::GivenUp(RailsAsk::kGivenUp, sequence);
    if (other == nullptr || other->inline_bytes() < sizeof(header)) continue;
    sent->told_by = other->index;
    given_.sends->AddMessage(*other, reinterpret_cast<std::byte*>(&header), sizeof(header), now_ns);
    given_.sends->Post();
  }
}

const RequestWindow::Entry* SessionRequests::IgnoreAnswer(uint64_t sequence, uint32_t op) {
  RequestWindow::Entry* entry = window_.Find(sequence);
  if (entry == nullptr || entry->op != op) return nullptr;
  entry->op = kInvalidOp;
  if (by_rails_.several()) to_tell_.push_back(sequence);
  return entry;
}

bool SessionRequests::TakeAnswer(const ReplyView& reply) {
  RequestWindow::Entry* entry = window_.Find(reply.header.sequence);
  if (entry == nullptr) return false;
  watch_.OnAnswer(*given_.watched);
  if (entry->op >= kOpsEnd) [[unlikely]] {
    TakeOtherAnswer(*entry, reply);
    return true;
  }
  RequestWindow::Entry answered = *entry;
  window_.End(*entry);
  given_.reports->OnReply(&answered, reply);
  (*given_.memory)->ReturnLent(answered);
  return true;
}

// To a question of the session, or to a request that nobody waits for.
void SessionRequests::TakeOtherAnswer(RequestWindow::Entry& entry, const ReplyView& reply) {
  const uint32_t op = entry.op;
  RequestRails::Sent* const sent = SentOf(entry);
  if (op == kInvalidOp && sent != nullptr && !RequestRails::EndsBy(reply.header, *sent)) {
    lost_ |= sent->connection == RequestRails::kNowhere;
    return;
  }
  EndUnwanted(entry);
  if (op == kMapOp) {
    given_.reports->OnMapReply(reply);
  } else if (op == kItemLeasesOp) {
    item_leases_ = ItemLeasesIn(reply);
  } else if (op == kRailsOp) {
    const bool ok = reply.header.status == static_cast<uint8_t>(ReplyStatus::kOk);
    rails_ = ok ? DecodeRails(reply.value) : RailsReply{};
  }
}

void SessionRequests::EndUnwanted(RequestWindow::Entry& entry) {
  const RequestWindow::Entry ended = entry;
  window_.End(entry);
  (*given_.memory)->ReturnLent(ended);
}

}  // namespace gannet
