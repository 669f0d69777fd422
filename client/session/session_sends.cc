// Chains of work requests. A chain is one connection's: READs take the connections in turn,
// compare-and-swaps the first, and requests that of RequestRails. A chain is posted as a whole, and
// may be left for the next Poll if operations that this one ended will be followed by others
// (OthersWillJoin).

#include "client/session/session_sends.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/data_path_checks.h"
#include "common/rdma/queue_pair.h"

namespace gannet {
namespace {

uint64_t BytesOf(const QueuedRead& read, std::span<const LocalPiece> pieces) {
  uint64_t bytes = read.bytes;
  for (const LocalPiece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

}  // namespace

void SessionSends::Restart() {
  const Grant& grant = given_.terms->grant;
  const ClientConnection& first = given_.connections->first();
  chain_.SetRegion(grant.region_address, first.region_rkey, first.op_lkey);
  next_read_connection_ = 0;
  rail_reads_.Restart();
}

void SessionSends::FlushQueued(bool may_wait, size_t completed) {
  while (!reads_.empty()) {
    const QueuedRead& read = reads_.front();
    if (chain_.TakesRead() || OpenReads(read.op)) {
      chain_.AddRead(read);
    } else if (!rail_reads_.several() || !AddRailRead(read, {})) {
      break;
    }
    reads_.Pop();
  }
  if (chain_.empty()) return;
  if (!may_wait || !OthersWillJoin(completed)) Post();
}

bool SessionSends::TryReadInto(uint32_t op, uint64_t offset, std::span<const LocalPiece> pieces) {
  GANNET_CHECK_DATA_PATH(TellsOfReads() && pieces.size() <= (*given_.memory)->pieces_max(),
                         "nobody would tell that the READ is lost, or it has too many pieces");
  if (!chain_.empty() && !chain_.TakesPieces(static_cast<uint32_t>(pieces.size()))) Post();
  if (!given_.phase->ready()) return false;
  if (!chain_.TakesRead() && !OpenReads(op))
    return rail_reads_.several() && AddRailRead({nullptr, offset, op, 0, nullptr}, pieces);
  chain_.AddReadInto(op, offset, pieces);
  return true;
}

// Returns whether more work completed in this Poll than READs follow from it. Then operations
// ended, and a caller who keeps many in flight begins others in their place. The next Poll begins
// by posting, and so posts both with one doorbell. Otherwise the operations in flight would part
// into those that READ windows and those that READ items, and stay apart, with a doorbell and a
// completion for each part.
bool SessionSends::OthersWillJoin(size_t completed) const {
  const uint32_t signal_every = given_.options->signal_every;
  const bool keeps_many = signal_every < SendChain::kMax;
  const bool takes_more = chain_.TakesRead() || rail_reads_.GoesOn();
  return keeps_many && takes_more && chain_.size() < std::min<size_t>(completed, signal_every);
}

// Opens the chain for READs, beginning with one of `op`, on the connection whose turn it is. A
// connection has only so many READs in flight, however many are posted to it. So more of them are
// spread over several connections, as long as each doorbell is worth it. Returns false if no
// connection has room, or if there are several rails: see AddRailRead.
bool SessionSends::OpenReads(uint32_t op) {
  ClientConnections& connections = *given_.connections;
  const uint32_t n = connections.size();
  if (n == 1) [[likely]]
    return OpenReadsOn(connections[0], SendChain::kMax, op);
  if (rail_reads_.several()) return false;
  const uint32_t share = rail_reads_.ReadsPerTurn();
  const bool apart = mixes_ && connections[1].ready();
  for (uint32_t tried = 0; tried < n && given_.phase->ready(); ++tried) {
    ClientConnection& connection = connections[next_read_connection_];
    next_read_connection_ = next_read_connection_ + 1 < n ? next_read_connection_ + 1 : 0;
    if (apart && connection.index == 0) continue;
    if (OpenReadsOn(connection, share, op)) return true;
  }
  return false;
}

// The chain takes no READ now.
void SessionSends::QueueOtherwise(std::byte* local, uint64_t offset, uint32_t op, uint32_t bytes,
                                  const MemoryKeys* keys) {
  const QueuedRead read{local, offset, op, bytes, keys};
  if (!rail_reads_.several() || !reads_.empty() || !AddRailRead(read, {})) reads_.Push(read);
}

// With several rails the chain is opened for one READ at a time. So each READ comes here, has the
// keys of its connection, and is kept, as its connection may break alone. Returns false if no
// connection has room.
bool SessionSends::AddRailRead(const QueuedRead& read, std::span<const LocalPiece> pieces) {
  ClientConnection* const open =
      !chain_.empty() && chain_.room() > 0 ? chain_.connection() : nullptr;
  ClientConnection* const to = rail_reads_.Choose(open, BytesOf(read, pieces), *given_.connections);
  if (to == nullptr || !OpenReadsOn(*to, 1, read.op)) return false;
  chain_.AllowReadByKeys();
  if (to->index != 0) to->kept_reads.Keep(to->work.posted(), read, pieces);
  if (pieces.empty()) {
    chain_.AddRead(read);
  } else {
    chain_.AddReadInto(read.op, read.offset, pieces);
  }
  return true;
}

// The operations do not notice: what was asked before is asked again.
void SessionSends::RepostLost() {
  std::deque<KeptReads::Read>& lost = rail_reads_.lost();
  while (!lost.empty() && given_.phase->ready()) {
    const KeptReads::Read& next = lost.front();
    if (!chain_.empty() && !chain_.TakesPieces(static_cast<uint32_t>(next.pieces.size()))) Post();
    if (!given_.phase->ready() || !AddRailRead(next.read, next.pieces)) return;
    lost.pop_front();
  }
}

inline bool SessionSends::OpenReadsOn(ClientConnection& connection, uint32_t share, uint32_t op) {
  if (!connection.ready() || connection.work.room() == 0 || !OpenChain(connection)) return false;
  if (chain_.empty()) given_.reports->OnDoorbell(op);
  chain_.AllowReads(share);
  return true;
}

// Makes room in the chain for one more work request on `connection`. If the chain is another
// connection's, posts it first. Returns false if that failed. REQUIRES: the connection's send queue
// has room.
bool SessionSends::OpenChain(ClientConnection& connection) {
  GANNET_CHECK_DATA_PATH(connection.work.room() > 0, "send queue overrun");
  if (!chain_.empty() && (chain_.connection() != &connection || chain_.size() == SendChain::kMax)) {
    Post();
  }
  if (!connection.ready()) return false;  // nor is any, if the session is not ready
  chain_.Open(&connection);
  chain_end_request_ = nullptr;
  return true;
}

void SessionSends::SendOrdered(const OrderedWork& work) {
  GANNET_CHECK_DATA_PATH(CanSend(), "there is no room to send");
  if (!OpenChain(given_.connections->first())) return;
  if (chain_.empty()) given_.reports->OnDoorbell(work.op);
  const Grant& grant = given_.terms->grant;
  const ClientConnection& first = given_.connections->first();
  const uint32_t lkey = work.keys != nullptr ? work.keys->lkeys[first.domain] : first.op_lkey;
  const ibv_sge sge = {reinterpret_cast<uint64_t>(work.local), work.bytes, lkey};
  const uint64_t address =
      work.offset + (work.of_locks ? grant.lock_address : grant.region_address);
  const uint32_t rkey = work.of_locks ? grant.lock_rkey : grant.region_rkey;
  const ibv_send_wr request =
      work.kind == InFlightWork::Kind::kRead
          ? ReadRequest(0, nullptr, address, rkey, 0)
          : CompareAndSwapRequest(0, nullptr, address, rkey, work.expected, work.desired, 0);
  if (work.kind != InFlightWork::Kind::kRead) given_.usage->PostedOther();
  chain_.Add({work.op, work.kind}, request, sge);
}

void SessionSends::SendReadOf(uint64_t address, uint32_t rkey, const QueuedRead& read,
                              InFlightWork::Kind kind) {
  GANNET_CHECK_DATA_PATH(CanSend(), "there is no room to send");
  if (!OpenChain(given_.connections->first())) return;
  if (chain_.empty() && kind == InFlightWork::Kind::kRead) given_.reports->OnDoorbell(read.op);
  const uint32_t lkey = read.keys->lkeys[given_.connections->first().domain];
  const ibv_sge sge = {reinterpret_cast<uint64_t>(read.local), read.bytes, lkey};
  chain_.Add({read.op, kind}, ReadRequest(0, nullptr, address + read.offset, rkey, 0), sge);
}

void SessionSends::AddRequest(ClientConnection& connection, RequestWindow::Entry& entry,
                              std::byte* message, int64_t now_ns) {
  if (!OpenChain(connection)) return;
  const bool signaled = chain_.NextIsSignaled();
  entry.posts += chain_.empty();
  entry.completions += signaled;
  ++entry.sends;
  chain_.AddMessage(message, entry.bytes);
  given_.usage->PostedOther();
  connection.liveness.OnSent(now_ns, *given_.watched);
  if (!signaled) chain_end_request_ = &entry;  // signaled after all if it stays the last
}

void SessionSends::AddMessage(ClientConnection& connection, std::byte* data, uint32_t bytes,
                              int64_t now_ns) {
  if (!OpenChain(connection)) return;
  chain_.AddMessage(data, bytes);
  given_.usage->PostedOther();
  connection.liveness.OnSent(now_ns, *given_.watched);
}

void SessionSends::Post() {
  RequestWindow::Entry* const end = std::exchange(chain_end_request_, nullptr);
  if (chain_.empty() || !given_.phase->ready()) return chain_.Clear();
  if (end != nullptr) ++end->completions;
  ClientConnection& connection = *chain_.connection();
  if (chain_.Post() != PostResult::kPosted) [[unlikely]] {
    given_.phase->BreakOne(
        connection, absl::UnavailableError(
                        absl::StrCat(given_.options->endpoint, ": the device refused a chain")));
  }
}

}  // namespace gannet
