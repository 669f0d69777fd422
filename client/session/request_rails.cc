#include "client/session/request_rails.h"

#include <array>

namespace gannet {

uint64_t RequestRails::LoadOf(const RequestHeader& header) {
  const uint64_t bytes = sizeof(header) + header.key_bytes + header.value_bytes;
  const bool may_be_written =
      header.opcode == static_cast<uint8_t>(Opcode::kGet) && (header.flags & kValueInBuffer) != 0;
  return may_be_written ? bytes + header.get.buffer_bytes : bytes;
}

RequestHeader RequestRails::GivenUp(RailsAsk ask, uint64_t sequence) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kRails);
  header.sequence = sequence;
  header.words[0] = static_cast<uint64_t>(ask);
  return header;
}

bool RequestRails::IsOfLock(const RequestHeader& header) {
  return KindOf(static_cast<Opcode>(header.opcode)) == RequestKind::kLock ||
         (header.flags & kUnderLock) != 0;
}

ClientConnection* RequestRails::Choose(const RequestHeader& header, bool to_first,
                                       const RequestWindow& window) {
  if (to_first || IsOfLock(header)) {
    ClientConnection& first = connections_.first();
    return first.work.room() > 0 ? &first : nullptr;
  }
  std::array<uint64_t, SessionMemory::kConnectionsMax> loads{};
  for (const Sent& it : sent_) {
    if (it.connection != kNowhere && window.Has(it.sequence)) loads[it.connection] += it.load;
  }
  ClientConnection* best = nullptr;
  bool last_may = false;
  for (ClientConnection& it : connections_) {
    if (!connections_.CarriesRequests(it) || it.work.room() == 0) continue;
    last_may |= it.index == last_;
    if (best == nullptr || loads[it.index] < loads[best->index]) best = &it;
  }
  if (best == nullptr) return nullptr;
  if (!last_may || loads[best->index] + kClearly <= loads[last_]) last_ = best->index;
  return &connections_[last_];
}

ClientConnection* RequestRails::Other(uint32_t connection) {
  for (ClientConnection& it : connections_) {
    if (it.index != connection && connections_.CarriesRequests(it) && it.work.room() > 0)
      return &it;
  }
  return nullptr;
}

void RequestRails::OnSent(uint32_t place, uint64_t sequence, const RequestHeader& header,
                          const ClientConnection& to) {
  sent_[place] = {.sequence = sequence,
                  .load = LoadOf(header),
                  .connection = to.index,
                  .position = to.work.posted(),
                  .domain = to.domain};
}

// Each connection has receives for one answer to each request, so both are awaited. Nor is the
// request's buffer free before: its device may still send it.
bool RequestRails::EndsBy(const ReplyHeader& answer, Sent& sent) {
  // It is under way, and may be lost with its connection.
  const bool under_way = answer.opcode == static_cast<uint8_t>(Opcode::kRails) &&
                         answer.status == static_cast<uint8_t>(ReplyStatus::kTryAgain);
  if (sent.told_by == kNowhere) {
    // Only a word kGivenUp is answered so, and it stands for a request whose connection is over.
    if (under_way) sent.connection = kNowhere;
    return !under_way;
  }
  sent.server_knows |= !under_way;
  return ++sent.answers == 2;
}

}  // namespace gannet
