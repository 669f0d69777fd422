// Primary: the links of its backups, from a request to connect to their end.

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/auth/handshake_mac.h"
#include "common/layout/superblock.h"
#include "common/rdma/queue_pair.h"
#include "glog/logging.h"
#include "server/group/primary.h"
#include "server/group/replica_request.h"
#include "server/replica/neighbours.h"

namespace gannet {
namespace {

// A group has few members. One that comes back may be there twice for a while.
constexpr size_t kLinksMax = 2 * 16;
// A link whose backup says nothing for so long is closed.
constexpr int64_t kHelloNsMax = 2 * kNsPerSecond;
// A backup that leaves room for less than RingWait::kProgressBytes for so long is removed.
constexpr int64_t kFullNsMax = kNsPerSecond;
// A receiver is closed sooner: clients wait meanwhile, and a move may begin anew.
constexpr int64_t kFullByReceiverNsMax = 250 * kNsPerMs;
constexpr size_t kMessagesPerPoll = 16;
constexpr const char* kOtherRing = "its ring has another length";
constexpr const char* kLinkedAlready = "it has a link already";

}  // namespace

void Primary::OnArrival(ReplicaArrival arrival, int64_t now) {
  WordMutexLock lock(mutex_);
  const auto refuse = [&](RejectCode code, std::string_view reason) {
    const struct Reject reject = NewReject(code, reason);
    context_.listener->Reject(std::move(arrival.incoming), std::as_bytes(std::span(&reject, 1)));
  };
  const std::optional<LinkConnection> which = LinkConnectionOf(arrival.request);
  if (!which) return refuse(RejectCode::kMalformed, "no connection of a link is called so");
  const uint64_t token = arrival.request.session_token;
  const auto it = std::ranges::find_if(
      backups_, [&](const auto& backup) { return backup->link->token() == token; });
  Backup* backup = it == backups_.end() ? nullptr : it->get();
  if (backup != nullptr && (backup->link->closing() || backup->link->Has(*which))) {
    return refuse(RejectCode::kMalformed, "the link has that connection already");
  }
  if (backup == nullptr) {
    if (backups_.size() >= kLinksMax) {
      return refuse(RejectCode::kTooManyConnections, "the primary has too many links");
    }
    auto link = PrimaryLink::Create(&environment_, next_link_++, token);
    if (!link.ok()) {
      return refuse(RejectCode::kTooManyConnections, std::string(link.status().message()));
    }
    backup = backups_.emplace_back(std::make_unique<Backup>()).get();
    backup->link = *std::move(link);
    backup->since_ns = now;
  }
  Grant grant = context_.grant;
  grant.session_token = token;
  grant.version = ChosenVersion(arrival.request).value_or(kProtocolVersionMax);
  if (arrival.key != nullptr) SignGrant(arrival.key->key, arrival.request, &grant);
  const absl::Status status =
      backup->link->Accept(*which, std::move(arrival.incoming), arrival.name,
                           std::move(arrival.key), std::as_bytes(std::span(&grant, 1)));
  if (status.ok()) return;
  LOG(WARNING) << "cannot accept a connection of a replica: " << status.message();
  backup->failed = true;
}

void Primary::OnGone(uint64_t name, int64_t now) {
  WordMutexLock lock(mutex_);
  for (const auto& backup : backups_) {
    if (backup->link->HasName(name)) Break(backup.get(), now, "the other side closed it");
  }
}

void Primary::PollMessages(int64_t now) {
  std::array<ibv_wc, kMessagesPerPoll> completions;
  while (const size_t n = made_.messages_cq->Poll(completions)) {
    for (size_t i = 0; i < n; ++i) {
      const ibv_wc& completion = completions[i];
      const WrId id = WrId::Unpack(completion.wr_id);
      Backup* const backup = FindLink(id.owner);
      if (backup == nullptr) continue;
      const auto kind = static_cast<LinkWork>(id.kind);
      if (kind == LinkWork::kDrain) {
        backup->link->OnDrained(id.slot);
      } else if (completion.status != IBV_WC_SUCCESS) {
        backup->failed = true;
      } else if (kind == LinkWork::kSend) {
        backup->link->OnSent(id.slot);
      } else if (!backup->link->closing()) {
        const std::vector<std::byte> message =
            backup->link->Take(id.slot, completion.byte_len, &backup->failed);
        OnMessage(backup, message, now);
      }
    }
  }
}

void Primary::OnMessage(Backup* backup, std::span<const std::byte> message, int64_t now) {
  const std::optional<ReplicaKind> kind = KindOfReplicaMessage(message);
  if (kind == ReplicaKind::kHello && !backup->member) {
    const auto hello = DecodeReplicaHello(message);
    if (hello.ok()) return OnHello(backup, *hello, now);
  } else if (kind == ReplicaKind::kReceiverHello && !backup->member) {
    const auto hello = DecodeReceiverHello(message);
    if (hello.ok()) return OnHello(backup, *hello, now);
  } else if (kind == ReplicaKind::kBeaconAnswer && backup->member) {
    const auto answer = DecodeBeaconAnswer(message);
    if (answer.ok() && answer->epoch == membership_.known().configuration.epoch) {
      // An older answer may come later, and then says nothing of the ring.
      writer_.OnConsumed(backup->ring, answer->consumed);
      backup->applied = std::max(backup->applied, answer->applied);
      backup->beacons.OnAnswer(answer->sequence);
      const bool sent =
          backup->receives || lease_.OnAnswer(backup->member->incarnation, answer->sequence, now);
      if (sent) return;
    }
  } else if (kind == ReplicaKind::kReady && backup->member && !backup->receives) {
    const auto ready = DecodeReplicaReady(message);
    if (ready.ok() && ready->epoch == membership_.known().configuration.epoch) {
      LOG(INFO) << backup->member->node << " has all items, and joins those in sync";
      membership_.Join(*backup->member, writer_.completed_lsn(backup->ring), now);
      backup->counted = true;
      beacon_at_ = 0;
      return;
    }
  } else if (kind == ReplicaKind::kClosing && backup->receives) {
    const auto closing = DecodeMoveClosing(message);
    if (closing.ok() && closing->epoch == membership_.known().configuration.epoch) {
      return end_.OnClosing(now);
    }
  }
  LOG(WARNING) << "a replica sent what is out of place";
  backup->failed = true;
}

std::string Primary::WhyNot(const ReplicaHello& hello) const {
  if (std::string why = WhyVersionsDoNotFit(hello, kLayoutVersion, stream_version_); !why.empty()) {
    return why;
  }
  if (hello.memory_bytes < context_.grant.region_bytes) {
    return absl::StrCat("it has ", hello.memory_bytes, " bytes of memory, and needs the primary's ",
                        context_.grant.region_bytes, ": use the same --memory");
  }
  if (hello.workers != context_.workers) {
    return absl::StrCat("it has ", hello.workers, " workers, the primary ", context_.workers,
                        ": use the same --workers");
  }
  if (hello.ring_bytes != made_.ring.bytes().size()) return kOtherRing;
  if (HasLink(hello.incarnation, false)) return kLinkedAlready;
  const std::vector<std::string> members = context_.group.directory->terms().members;
  if (std::ranges::find(members, NameOf(hello)) == members.end()) {
    return absl::StrCat("node ", std::string(NameOf(hello)), " is no member: kvcli cluster add");
  }
  const bool joins = hello.history == 0;
  const bool counts = membership_.Counts(hello.incarnation);
  if (joins && !open()) return "the primary does not serve yet: try again";
  if (joins && counts) return "it is in sync already";
  if (joins) return "";
  if (hello.history != terms_.history) return "it has another history";
  const bool sent = writer_.end().lsn != opening_.first_lsn();
  if (!counts || phase_.now() != PrimaryPhase::kOpening || sent)
    return "it comes too late: it has to join again";
  return "";
}

std::string Primary::WhyNot(const ReceiverHello& hello) const {
  if (std::string why = WhyVersionsDoNotFit(hello, kLayoutVersion, stream_version_); !why.empty()) {
    return why;
  }
  if (hello.ring_bytes != made_.ring.bytes().size()) return kOtherRing;
  if (HasLink(hello.incarnation, true)) return kLinkedAlready;
  return open() ? "" : "the primary does not serve yet: try again";
}

void Primary::OnHello(Backup* backup, const ReplicaHello& hello, int64_t now) {
  Answer(backup, hello, hello.history == 0, WhyNot(hello), now);
}

void Primary::OnHello(Backup* backup, const ReceiverHello& hello, int64_t now) {
  std::string why = WhyNot(hello);
  backup->receives = why.empty();
  Answer(backup, hello, true, std::move(why), now);
}

template <class Hello>
void Primary::Answer(Backup* backup, const Hello& hello, bool joins, std::string why, int64_t now) {
  if (!why.empty()) {
    LOG(WARNING) << "refuses " << NameOf(hello) << " as a replica: " << why;
    backup->link->Send(NewReplicaRefusal(why));
    // The backup closes the link. If it does not, that is done when its time is up.
    backup->since_ns = now;
    return;
  }
  backup->member =
      GroupMember{.node = std::string(NameOf(hello)), .incarnation = hello.incarnation};
  backup->link->SetRing(hello.ring_address, hello.ring_rkey);
  Welcome(backup, joins);
}

void Primary::Welcome(Backup* backup, bool joins) {
  backup->ring = writer_.AddLink();
  outbox_.OnLink();
  ReplicaWelcome welcome = NewReplicaWelcome();
  welcome.incarnation = context_.self.incarnation;
  welcome.history = terms_.history;
  welcome.epoch = membership_.known().configuration.epoch;
  welcome.stream_id = writer_.stream_id();
  welcome.first_lsn = writer_.end().lsn;
  welcome.tail_end = joins ? welcome.first_lsn : opening_.tail_end();
  welcome.position = writer_.end().position;
  welcome.version_next = context_.store->NextVersion();
  welcome.clock_ms = context_.now_ms();
  welcome.lease_ms = terms_.lease_ms;
  welcome.stream_version = stream_version_;
  const char* const does = backup->receives ? " begins to receive partitions"
                           : joins          ? " begins to join"
                                            : " follows this primary";
  LOG(INFO) << backup->member->node << does;
  if (!backup->link->Send(welcome)) backup->failed = true;
  beacon_at_ = 0;
  // A backup that follows has them, and those that are in sync may be told again. To a receiver
  // they say nothing.
  if (!joins || backup->receives) return;
  sessions_.ForEachRecord([this](const SessionRecord& record)
                              GANNET_UNCHECKED_LOCKS { outbox_.AddSession(record, committed_); });
}

// One that is in sync stays counted, and keeps its place in the ring, until its removal is known.
void Primary::Break(Backup* backup, int64_t now, std::string_view why) {
  if (backup->link->closing()) return;
  backup->failed = true;
  backup->link->BeginClose();
  if (!backup->member) return;
  LOG(WARNING) << "ends the link to " << backup->member->node << ": " << why;
  if (backup->receives) return;
  ++links_broken_;
  membership_.OnBroken(*backup->member, now);
}

void Primary::DropLinks(int64_t now) {
  failed_ = false;
  const int64_t waited = ring_wait_.Look(!outbox_.empty(), writer_.end().position, now);
  const bool slow = waited > kFullNsMax;
  const bool too_slow_to_receive = waited > kFullByReceiverNsMax;
  for (const auto& backup : backups_) {
    if (backup->failed) Break(backup.get(), now, "it broke");
    if (backup->link->closing()) continue;
    if (backup->link->revoked()) {
      Break(backup.get(), now, "its key is valid no longer");
      // Nobody else need be heard for that: it is not the network that fails.
      if (backup->member && !backup->receives) membership_.Expel(*backup->member);
      continue;
    }
    if (!backup->member) {
      if (now - backup->since_ns > kHelloNsMax) Break(backup.get(), now, "no hello came");
      continue;
    }
    if (backup->receives) {
      if (too_slow_to_receive && writer_.IsLast(backup->ring)) {
        Break(backup.get(), now, "it is too slow to receive, and leaves no room in its ring");
      }
      continue;
    }
    const bool counts = membership_.Counts(backup->member->incarnation);
    backup->counted |= counts;
    if (backup->counted && !counts) {
      Break(backup.get(), now, "it was silent or taken out, and is not in sync any more");
    } else if (slow && writer_.IsLast(backup->ring)) {
      Break(backup.get(), now, "it is too slow, and leaves no room in its ring");
    }
  }
  std::erase_if(backups_, [this](const auto& backup) GANNET_UNCHECKED_LOCKS {
    if (!backup->link->closed()) return false;
    if (backup->member && !backup->receives && membership_.Counts(backup->member->incarnation)) {
      return false;
    }
    if (backup->member) writer_.RemoveLink(backup->ring);
    for (const uint64_t name : backup->link->names()) {
      if (name != 0) context_.server->Forget(name);
    }
    return true;
  });
}

}  // namespace gannet
