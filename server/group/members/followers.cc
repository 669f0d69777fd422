// Links come by OnArrival, say hello, become ready, and end by Break. A backup that is in sync
// stays counted after its link has broken, until the register says that it is removed.

#include "server/group/members/followers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/auth/handshake_mac.h"
#include "common/rdma/queue_pair.h"
#include "glog/logging.h"
#include "server/group/members/replica_request.h"

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
constexpr size_t kPollMax = 16;

}  // namespace

Follower* Followers::Find(uint32_t number) {
  for (const auto& follower : all_) {
    if (follower->link->number() == number) return follower.get();
  }
  return nullptr;
}

bool Followers::HasLink(uint64_t incarnation, bool receives) const {
  return std::ranges::any_of(all_, [&](const auto& follower) {
    return follower->said_hello() && follower->member.incarnation == incarnation &&
           follower->receives() == receives;
  });
}

bool Followers::AllLinked() const {
  return std::ranges::all_of(lead_.configuration().in_sync, [this](const GroupMember& member) {
    return member == context_.self || HasLink(member.incarnation, false);
  });
}

bool Followers::HasReceiver() const {
  return std::ranges::any_of(
      all_, [](const auto& follower) { return follower->receives() && follower->link->usable(); });
}

void Followers::Refuse(ReplicaArrival arrival, RejectCode code, std::string_view reason) {
  const struct Reject reject = NewReject(code, reason);
  context_.listener->Reject(std::move(arrival.incoming), std::as_bytes(std::span(&reject, 1)));
}

void Followers::OnArrival(ReplicaArrival arrival, BootTime now) {
  const std::optional<LinkConnection> which = LinkConnectionOf(arrival.request);
  if (!which) {
    return Refuse(std::move(arrival), RejectCode::kMalformed,
                  "no connection of a link is called so");
  }
  const uint64_t token = arrival.request.session_token;
  const auto it = std::ranges::find_if(
      all_, [&](const auto& follower) { return follower->link->token() == token; });
  Follower* follower = it == all_.end() ? nullptr : it->get();
  if (follower != nullptr && (follower->link->closing() || follower->link->Has(*which) ||
                              follower->rail != arrival.rail)) {
    return Refuse(std::move(arrival), RejectCode::kMalformed,
                  "the link has that connection already");
  }
  if (follower == nullptr) follower = Add(&arrival, now);
  if (follower == nullptr) return;
  Grant grant = context_.grant;
  grant.session_token = token;
  grant.version = ChosenVersion(arrival.request).value_or(kProtocolVersionMax);
  if (arrival.key != nullptr) SignGrant(arrival.key->key, arrival.request, &grant);
  const absl::Status status =
      follower->link->Accept(*which, std::move(arrival.incoming), arrival.name,
                             std::move(arrival.key), std::as_bytes(std::span(&grant, 1)));
  if (status.ok()) return;
  LOG(WARNING) << "cannot accept a connection of a replica: " << status.message();
  follower->link->Fail();
}

Follower* Followers::Add(ReplicaArrival* arrival, BootTime now) {
  if (all_.size() >= kLinksMax) {
    Refuse(std::move(*arrival), RejectCode::kTooManyConnections, "the primary has too many links");
    return nullptr;
  }
  auto link = PrimaryLink::Create(&environments_[arrival->rail], next_link_++,
                                  arrival->request.session_token);
  if (!link.ok()) {
    Refuse(std::move(*arrival), RejectCode::kTooManyConnections,
           std::string(link.status().message()));
    return nullptr;
  }
  Follower* const added = all_.emplace_back(std::make_unique<Follower>()).get();
  added->link = *std::move(link);
  added->rail = arrival->rail;
  added->since = now;
  return added;
}

void Followers::OnGone(uint64_t name, BootTime now) {
  for (const auto& follower : all_) {
    if (follower->link->HasName(name)) OnBroken(follower.get(), now, "the other side closed it");
  }
}

void Followers::Ship() {
  for (const auto& follower : all_) {
    if (!follower->takes_records()) continue;
    const RingWriter::Shipment shipment = ring_.writer().Ship(follower->ring);
    if (shipment[0].bytes == 0) continue;
    failed_ |= !follower->link->Write(shipment);
  }
}

void Followers::PollWrites() {
  std::array<ibv_wc, kPollMax> completions;
  for (const PrimaryLink::Environment& rail : environments_) {
    while (const size_t n = rail.stream_cq->Poll(completions)) {
      for (size_t i = 0; i < n; ++i) {
        const WrId id = WrId::Unpack(completions[i].wr_id);
        Follower* const follower = Find(id.owner);
        if (follower == nullptr) continue;
        if (static_cast<LinkWork>(id.kind) == LinkWork::kDrain) {
          follower->link->OnDrained(id.slot);
        } else if (completions[i].status != IBV_WC_SUCCESS) {
          follower->link->Fail();
          failed_ = true;
        } else if (follower->said_hello()) {
          ring_.writer().OnCompleted(follower->ring);
          if (follower->receives()) continue;
          lead_.commit().OnCompleted(follower->member.incarnation,
                                     ring_.writer().completed_lsn(follower->ring));
        }
      }
    }
  }
}

Followers::Heard Followers::PollMessages(BootTime now) {
  Heard heard;
  std::array<ibv_wc, kPollMax> completions;
  for (const PrimaryLink::Environment& rail : environments_) {
    while (const size_t n = rail.messages_cq->Poll(completions)) {
      for (size_t i = 0; i < n; ++i) {
        const ibv_wc& completion = completions[i];
        const WrId id = WrId::Unpack(completion.wr_id);
        Follower* const follower = Find(id.owner);
        if (follower == nullptr) continue;
        const auto kind = static_cast<LinkWork>(id.kind);
        if (kind == LinkWork::kDrain) {
          follower->link->OnDrained(id.slot);
        } else if (completion.status != IBV_WC_SUCCESS) {
          follower->link->Fail();
        } else if (kind == LinkWork::kSend) {
          follower->link->OnSent(id.slot);
        } else if (!follower->link->closing()) {
          const std::vector<std::byte> message = follower->link->Take(id.slot, completion.byte_len);
          OnMessage(follower, message, now, &heard);
        }
      }
    }
  }
  return heard;
}

void Followers::OnMessage(Follower* from, std::span<const std::byte> message, BootTime now,
                          Heard* heard) {
  const std::optional<ReplicaKind> kind = KindOfReplicaMessage(message);
  bool in_place = false;
  if (kind == ReplicaKind::kHello) {
    in_place = OnHello(from, message, now);
    heard->beacon_is_due |= in_place && from->said_hello();
  } else if (kind == ReplicaKind::kResume) {
    in_place = OnResume(from, message, now);
    heard->beacon_is_due |= in_place && from->said_hello();
  } else if (kind == ReplicaKind::kReceiverHello) {
    in_place = OnReceiverHello(from, message, now);
    heard->beacon_is_due |= in_place && from->said_hello();
  } else if (kind == ReplicaKind::kBeaconAnswer) {
    in_place = OnAnswer(from, message, now);
  } else if (kind == ReplicaKind::kReady) {
    in_place = OnReady(from, message, now);
    heard->beacon_is_due |= in_place;
  } else if (kind == ReplicaKind::kClosing) {
    in_place = IsClosing(*from, message);
    heard->closes |= in_place;
  }
  if (in_place) return;
  LOG(WARNING) << "a replica sent what is out of place";
  from->link->Fail();
}

bool Followers::OnHello(Follower* from, std::span<const std::byte> message, BootTime now) {
  const auto hello = DecodeReplicaHello(message);
  if (from->said_hello() || !hello.ok()) return false;
  Answer(from, *hello, FollowerState::kFollows, hello->history == 0, now);
  return true;
}

// The former link may be usable yet, as far as is known here. It counts for nothing from now on:
// its backup has fenced it, and has what it brought. What is in flight there reaches nobody.
bool Followers::OnResume(Follower* from, std::span<const std::byte> message, BootTime now) {
  const auto resume = DecodeReplicaResume(message);
  if (from->state.now() != FollowerState::kGreets || !resume.ok()) return false;
  const auto it = std::ranges::find_if(all_, [&](const auto& follower) {
    return follower->is_backup() && follower->member.incarnation == resume->incarnation;
  });
  Follower* const former = it == all_.end() ? nullptr : it->get();
  std::string why_not = admission_.WhyNot(*resume, former, now);
  const RingMark begin = {.lsn = resume->lsn, .position = resume->position};
  if (why_not.empty() && !ring_.writer().GoBack(former->ring, begin)) {
    why_not = "the ring has not what it needs: it has to join again";
  }
  const std::string name = former == nullptr ? "a backup" : former->member.node;
  if (!why_not.empty()) {
    Refuse(from, name, why_not, now);
    return true;
  }
  from->state.To(FollowerState::kFollows);
  if (former->state.now() == FollowerState::kCounted) from->Count();
  from->member = former->member;
  from->ring = former->ring;
  from->applied = former->applied;
  from->link->SetRing(resume->ring_address, resume->ring_rkey);
  from->to_answer_first = true;
  former->state.To(FollowerState::kReplaced);
  former->link->BeginClose();
  LOG(INFO) << name << " goes on over rail " << int{from->rail};
  Welcome(from, begin, std::max(ring_.writer().end().lsn, lead_.opening().tail_end()));
  return true;
}

bool Followers::OnReceiverHello(Follower* from, std::span<const std::byte> message, BootTime now) {
  const auto hello = DecodeReceiverHello(message);
  if (from->said_hello() || !hello.ok()) return false;
  Answer(from, *hello, FollowerState::kReceives, /*joins=*/true, now);
  return true;
}

// An older answer may come later, and then says nothing of the ring.
bool Followers::OnAnswer(Follower* from, std::span<const std::byte> message, BootTime now) {
  if (!from->said_hello()) return false;
  const auto answer = DecodeBeaconAnswer(message);
  if (!answer.ok() || answer->epoch != lead_.epoch()) return false;
  ring_.writer().OnConsumed(from->ring, answer->consumed);
  from->applied = std::max(from->applied, answer->applied);
  from->beacons.OnAnswer(answer->sequence);
  from->to_answer_first = false;
  return from->receives() ||
         lead_.lease().OnAnswer(from->member.incarnation, answer->sequence, now);
}

bool Followers::OnReady(Follower* from, std::span<const std::byte> message, BootTime now) {
  if (!from->is_backup()) return false;
  const auto ready = DecodeReplicaReady(message);
  if (!ready.ok() || ready->epoch != lead_.epoch()) return false;
  // Of a link that goes on: it does not know whether the former one brought its word.
  if (lead_.configuration().IsInSync(from->member)) return true;
  LOG(INFO) << from->member.node << " has all items, and joins those in sync";
  lead_.membership().Join(from->member, ring_.writer().completed_lsn(from->ring), now);
  from->Count();
  return true;
}

bool Followers::IsClosing(const Follower& from, std::span<const std::byte> message) const {
  const auto closing = DecodeMoveClosing(message);
  return from.receives() && closing.ok() && closing->epoch == lead_.epoch();
}

// The backup closes the link. If it does not, that is done when its time is up.
void Followers::Refuse(Follower* from, std::string_view name, const std::string& why_not,
                       BootTime now) {
  LOG(WARNING) << "refuses " << name << " as a replica: " << why_not;
  from->link->Send(NewReplicaRefusal(why_not));
  from->since = now;
}

template <class Hello>
void Followers::Answer(Follower* to, const Hello& hello, FollowerState as, bool joins,
                       BootTime now) {
  if (const std::string why_not =
          admission_.WhyNot(hello, HasLink(hello.incarnation, as == FollowerState::kReceives));
      !why_not.empty()) {
    return Refuse(to, NameOf(hello), why_not, now);
  }
  to->state.To(as);
  to->member = GroupMember{.node = std::string(NameOf(hello)), .incarnation = hello.incarnation};
  to->link->SetRing(hello.ring_address, hello.ring_rkey);
  to->ring = ring_.AddLink();
  const RingMark end = ring_.writer().end();
  const char* const does = to->receives() ? " begins to receive partitions"
                           : joins        ? " begins to join"
                                          : " follows this primary";
  LOG(INFO) << to->member.node << does;
  Welcome(to, end, joins ? end.lsn : lead_.opening().tail_end());
  // A backup that follows has them. To a receiver they say nothing.
  if (joins && !to->receives()) ring_.AppendSessions();
}

void Followers::Welcome(Follower* to, const RingMark& begin, uint64_t tail_end) {
  ReplicaWelcome welcome = NewReplicaWelcome();
  welcome.incarnation = context_.self.incarnation;
  welcome.history = lead_.terms().history;
  welcome.epoch = lead_.epoch();
  welcome.stream_id = ring_.writer().stream_id();
  welcome.first_lsn = begin.lsn;
  welcome.tail_end = tail_end;
  welcome.position = begin.position;
  welcome.version_next = context_.store->NextVersion();
  welcome.clock_ms = context_.server->Time().ms();
  welcome.lease_ms = lead_.terms().lease_ms;
  welcome.stream_version = ring_.version();
  to->link->Send(welcome);
}

// The lease decides how long it may be silent. One that is counted for nothing keeps its place in
// the ring for as long.
void Followers::OnBroken(Follower* follower, BootTime now, std::string_view why) {
  const bool has_rails = environments_.size() > 1;
  if (!has_rails || !follower->is_backup()) return Break(follower, now, why);
  if (follower->link->closing()) return;
  follower->link->BeginClose();
  LOG(WARNING) << "the link to " << follower->member.node << " is over: " << why
               << ". It may go on over another rail";
  ++links_broken_;
  follower->resumes_until = now + TimesOf(lead_.terms()).silence_with_rails_ns();
}

// One that is in sync stays counted, and keeps its place in the ring, until its removal is known.
void Followers::Break(Follower* follower, BootTime now, std::string_view why) {
  if (follower->link->closing()) return;
  follower->link->BeginClose();
  if (!follower->said_hello()) return;
  LOG(WARNING) << "ends the link to " << follower->member.node << ": " << why;
  if (follower->receives()) return;
  ++links_broken_;
  lead_.membership().OnBroken(follower->member, now);
}

std::string_view Followers::WhyBreak(Follower* follower, int64_t waited, BootTime now) {
  if (!follower->said_hello()) {
    return now - follower->since > kHelloNsMax ? "no hello came" : "";
  }
  if (follower->receives()) {
    const bool slow = waited > kFullByReceiverNsMax && ring_.writer().IsLast(follower->ring);
    return slow ? "it is too slow to receive, and leaves no room in its ring" : "";
  }
  const bool counts = lead_.membership().Counts(follower->member.incarnation);
  if (counts) follower->Count();
  if (follower->state.now() == FollowerState::kCounted && !counts) {
    return "it was silent or taken out, and is not in sync any more";
  }
  const bool slow = waited > kFullNsMax && ring_.writer().IsLast(follower->ring);
  return slow ? "it is too slow, and leaves no room in its ring" : "";
}

void Followers::DropLinks(BootTime now) {
  failed_ = false;
  const int64_t waited = ring_wait_.Look(ring_.waits(), ring_.writer().end().position, now);
  for (const auto& follower : all_) {
    if (follower->may_resume() && follower->link->revoked()) {
      follower->resumes_until = BootTime();
      lead_.membership().Expel(follower->member);
    }
    if (follower->link->closing()) continue;
    if (follower->link->usable() && follower->link->revoked()) {
      Break(follower.get(), now, "its key is valid no longer");
      // Nobody else need be heard for that: it is not the network that fails.
      if (follower->is_backup()) lead_.membership().Expel(follower->member);
      continue;
    }
    if (follower->link->failed()) {
      OnBroken(follower.get(), now, "it broke");
      continue;
    }
    const std::string_view why = WhyBreak(follower.get(), waited, now);
    if (!why.empty()) Break(follower.get(), now, why);
  }
  std::erase_if(all_, [this, now](const auto& follower) {
    if (!follower->link->closed()) return false;
    if (follower->is_backup() && now < follower->resumes_until) return false;
    if (follower->is_backup() && lead_.membership().Counts(follower->member.incarnation)) {
      return false;
    }
    if (follower->said_hello()) ring_.writer().RemoveLink(follower->ring);
    for (const uint64_t name : follower->link->names()) {
      if (name != 0) context_.server->Forget(name);
    }
    return true;
  });
}

// Whoever joins later is refused if it does not speak the version. So all who may take over speak
// it, and whoever does begins with the oldest one, which survivors of all versions know.
void Followers::RaiseStreamVersion() {
  while (ring_.version() < kStreamVersions.max) {
    const auto next = static_cast<uint16_t>(ring_.version() + 1);
    for (const GroupMember& member : lead_.configuration().in_sync) {
      if (member != context_.self && !admission_.Speaks(member, next)) return;
    }
    for (const auto& follower : all_) {
      // Also one whose link is over: it may go on.
      if (follower->said_hello() && !admission_.Speaks(follower->member, next)) return;
    }
    ring_.RaiseTo(next);
    LOG(INFO) << "the stream has version " << next << " from now on, which all members speak";
  }
}

}  // namespace gannet
