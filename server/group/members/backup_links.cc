// Dials the primary that it is told, takes what comes, and ends a link in one of two ways: fenced,
// if its ring is still to be read, or retired, if not. Either way it is there until it is flushed.

#include "server/group/members/backup_links.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace gannet {

void BackupLinks::Connect(const GroupMember& primary, int64_t lease_ns, BootTime now) {
  if (link_ || retired_ || now < connect_at_) return;
  std::vector<std::string> rails;
  const std::optional<std::string> address = Choose(primary, &rails);
  if (!address) {
    connect_at_ = now + kRetryNs;
    return log_->Add(
        absl::StrCat("the address of the primary, ", primary.node, ", is not known yet"));
  }
  auto dialed = dialer_.Dial({.endpoint = *address,
                              .token = context_.random->NextNonzero(),
                              .ring_bytes = context_.group.terms.ring_bytes,
                              .deadline = now + lease_ns});
  if (!dialed.ok()) {
    connect_at_ = now + kRetryNs;
    return log_->Add(std::string(dialed.status().message()));
  }
  if (*dialed == nullptr) {
    connect_at_ = now + kLookUpNs;
    return log_->Add(absl::StrCat("looks up the name of the primary, ", *address));
  }
  link_.emplace(Link{.end = *std::move(dialed),
                     .primary = primary.incarnation,
                     .rails = rails,
                     .another = !rails.empty() && refused_by_ != primary.incarnation});
  heard_ = now;
}

// The backups of a primary begin with different rails, in the order of the members.
std::optional<std::string> BackupLinks::Choose(const GroupMember& primary,
                                               std::vector<std::string>* rails) {
  const GroupDirectory& directory = *context_.group.directory;
  const std::optional<std::string> address = directory.AddressOf(primary);
  const std::optional<NodeSeen> seen = directory.NodeOf(primary.node);
  const bool another =
      address && seen && seen->incarnation == primary.incarnation && !seen->rails.empty();
  if (!another) return address;
  *rails = seen->rails;
  if (turn_of_ != primary.incarnation) {
    turn_of_ = primary.incarnation;
    turn_ = 0;
    for (const std::string& node : directory.terms().members) {
      if (node == context_.self.node) break;
      turn_ += node != primary.node;
    }
  }
  return seen->rails[turn_ % seen->rails.size()];
}

void BackupLinks::SayResume(uint64_t epoch, const RingReader::Begin& at) {
  ReplicaResume resume = NewReplicaResume();
  resume.epoch = epoch;
  resume.lsn = at.lsn;
  resume.position = at.position;
  epoch_ = epoch;
  link_->resumes = true;
  link_->end->SayHello(resume, context_.self.incarnation);
}

void BackupLinks::SayHello(uint64_t epoch, uint64_t history, uint64_t applied) {
  ReplicaHello hello = NewReplicaHello();
  hello.history = history;
  hello.epoch = epoch;
  hello.applied = hello.end = applied;
  hello.memory_bytes = context_.grant.region_bytes;
  hello.workers = context_.workers;
  hello.stream_version_min = versions_.Say().min;
  hello.stream_version_max = versions_.Say().max;
  SetName(&hello, context_.self.node);
  epoch_ = epoch;
  link_->end->SayHello(hello, context_.self.incarnation);
}

void BackupLinks::SayReady() {
  ReplicaReady ready = NewReplicaReady();
  ready.epoch = epoch_;
  link_->end->Send(ready);
}

bool BackupLinks::Accept(const ReplicaWelcome& welcome, BootTime now) {
  if (welcome.epoch != epoch_ || welcome.incarnation != link_->primary) {
    Lose();
    return false;
  }
  if (const absl::Status accepted = link_->end->Accept(welcome); !accepted.ok()) {
    Lose();
    log_->Add(std::string(accepted.message()));
    return false;
  }
  versions_.OnStream(welcome.stream_version);
  heard_ = now;
  return true;
}

void BackupLinks::Retire(BootTime again) {
  GANNET_CHECK(link_ && !retired_, "there is no link, or a former one is not flushed");
  link_->end->BeginFence();
  retired_ = std::move(link_->end);
  link_.reset();
  connect_at_ = again;
  ++turn_;
}

bool BackupLinks::Fence() {
  if (!link_) return true;
  link_->end->BeginFence();
  return link_->end->fenced();
}

void BackupLinks::Poll(BootTime now) {
  if (retired_) {
    retired_->Poll(now);
    if (retired_->fenced()) retired_.reset();
  }
  if (link_) link_->end->Poll(now);
}

std::optional<BackupLink::Message> BackupLinks::Take() {
  if (!link_) return std::nullopt;
  BackupLink& end = *link_->end;
  while (auto message = end.Take()) {
    const bool is_beacon = std::holds_alternative<BackupLink::ToldBeacon>(*message);
    if (is_beacon || std::holds_alternative<ReplicaWelcome>(*message)) return message;
    OnOther(*message);
  }
  if (end.status().ok() || link_->lost) return std::nullopt;
  link_->lost = true;
  if (end.said_hello() && !end.welcomed() && !link_->resumes) versions_.OnClosedWithoutAnswer();
  log_->Add(absl::StrCat("no link to the primary: ", end.why()));
  return std::nullopt;
}

void BackupLinks::OnOther(const BackupLink::Message& message) {
  if (const auto* refused = std::get_if<BackupLink::Refused>(&message)) {
    if (link_->resumes) {
      refused_by_ = link_->primary;
      link_->another = false;
    } else {
      versions_.OnRefused();
    }
    if (refused->why) {
      log_->Add(absl::StrCat("the primary refuses this server: ", *refused->why));
    }
  }
  const auto* other = std::get_if<BackupLink::OutOfPlace>(&message);
  const bool is_beacon = other != nullptr && other->kind == ReplicaKind::kBeacon;
  link_->lost = link_->lost || !is_beacon;
}

}  // namespace gannet
