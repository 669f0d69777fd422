#include "common/protocol/replica.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/layout/superblock.h"
#include "common/protocol/connect.h"

namespace gannet {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);

template <class T>
T New(ReplicaKind kind) {
  T message{};
  message.header = {
      .magic = kReplicaMagic, .kind = static_cast<uint16_t>(kind), .length = sizeof(message)};
  return message;
}

// A hello with this program's versions.
template <class Hello>
Hello NewHello(ReplicaKind kind) {
  Hello hello = New<Hello>(kind);
  hello.layout_version = kLayoutVersion;
  hello.stream_version_min = kStreamVersions.min;
  hello.stream_version_max = kStreamVersions.max;
  return hello;
}

template <class Hello>
std::string_view NameIn(const Hello& hello) {
  return {hello.name, strnlen(hello.name, sizeof(hello.name))};
}

template <class Hello>
void SetNameIn(Hello* hello, std::string_view name) {
  GANNET_CHECK(IsServerName(name), "not a name of a server");
  std::ranges::fill(hello->name, '\0');
  std::ranges::copy(name, hello->name);
}

// Return what is wrong with a message, or a part of one, or nullptr if nothing is.

template <class Hello>
const char* WhatIsWrongWithRing(const Hello& hello) {
  if (hello.ring_bytes < kRingBytesMin || hello.ring_bytes > kRingBytesMax ||
      hello.ring_bytes % kRingAlignment != 0) {
    return "a ring of a wrong length";
  }
  if (hello.ring_address == 0 || hello.ring_address % kRingAlignment != 0 ||
      hello.ring_address > UINT64_MAX - hello.ring_bytes) {
    return "a ring at an impossible address";
  }
  return nullptr;
}

template <class Hello>
const char* WhatIsWrongWithRingOrName(const Hello& hello) {
  if (const char* const wrong = WhatIsWrongWithRing(hello)) return wrong;
  if (hello.stream_version_min > hello.stream_version_max) return "no version of the stream";
  if (!IsServerName(NameIn(hello))) return "an empty name, or one with odd characters";
  const char* const behind = hello.name + NameIn(hello).size();
  if (std::any_of(behind, std::end(hello.name), [](char c) { return c != '\0'; })) {
    return "bytes behind its name";
  }
  return nullptr;
}

const char* WhatIsWrong(const ReplicaHello& hello) {
  if (hello.incarnation == 0) return "no incarnation";
  if (hello.applied > hello.end) return "more applied than received";
  if (hello.applied % kWord != 0 || hello.end % kWord != 0) return "an LSN inside a word";
  if (hello.history == 0 && hello.end != 0) return "records, but no history";
  if (hello.memory_bytes == 0) return "no memory";
  if (hello.workers == 0) return "no workers";
  return WhatIsWrongWithRingOrName(hello);
}

const char* WhatIsWrong(const ReplicaWelcome& welcome) {
  if (welcome.incarnation == 0) return "no incarnation";
  if (welcome.history == 0) return "no history";
  if (welcome.epoch == 0) return "no epoch";
  if (welcome.stream_id == 0) return "no stream";
  if (welcome.tail_end < welcome.first_lsn) return "a tail that ends before the stream begins";
  if (welcome.first_lsn % kWord != 0 || welcome.tail_end % kWord != 0 ||
      welcome.position % kWord != 0) {
    return "a place inside a word";
  }
  if (welcome.version_next == 0) return "no version";
  if (welcome.lease_ms < kPrimaryLeaseMsMin || welcome.lease_ms > kPrimaryLeaseMsMax) {
    return "a lease of a wrong length";
  }
  return welcome.reserved != 0 ? "reserved bytes that are not zero" : nullptr;
}

const char* WhatIsWrong(const Beacon& beacon) {
  if (beacon.epoch == 0) return "no epoch";
  if (beacon.sequence == 0) return "no sequence number";
  return beacon.committed % kWord != 0 ? "an LSN inside a word" : nullptr;
}

const char* WhatIsWrong(const BeaconAnswer& answer) {
  if (answer.epoch == 0) return "no epoch";
  if (answer.sequence == 0) return "no sequence number";
  const bool words = answer.applied % kWord == 0 && answer.consumed % kWord == 0;
  return words ? nullptr : "a place inside a word";
}

const char* WhatIsWrong(const ReplicaResume& resume) {
  if (resume.incarnation == 0) return "no incarnation";
  if (resume.epoch == 0) return "no epoch";
  if (resume.lsn % kWord != 0 || resume.position % kWord != 0) return "a place inside a word";
  if (resume.reserved != 0) return "reserved bytes that are not zero";
  return WhatIsWrongWithRing(resume);
}

const char* WhatIsWrong(const ReplicaReady& ready) {
  return ready.epoch == 0 ? "no epoch" : nullptr;
}

const char* WhatIsWrong(const ReplicaRefusal& refusal) {
  const std::string_view reason = ReasonOf(refusal);
  if (reason.empty()) return "no reason";
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (!std::ranges::all_of(reason, printable)) return "a reason that cannot be printed";
  const auto zero = [](char c) { return c == '\0'; };
  const bool padded = std::all_of(refusal.reason + reason.size(), std::end(refusal.reason), zero);
  return padded ? nullptr : "bytes behind its reason";
}

const char* WhatIsWrong(const ReceiverHello& hello) {
  if (hello.incarnation == 0) return "no incarnation";
  if (hello.reserved != 0) return "reserved bytes that are not zero";
  return WhatIsWrongWithRingOrName(hello);
}

const char* WhatIsWrong(const MoveClosing& closing) {
  return closing.epoch == 0 ? "no epoch" : nullptr;
}

const char* WhatIsWrong(const MoveEnded& ended) {
  if (ended.epoch == 0) return "no epoch";
  if (ended.revision == 0) return "no revision of a map";
  if (ended.version_next == 0) return "no version";
  return ended.lsn % kWord != 0 ? "an LSN inside a word" : nullptr;
}

template <class T>
absl::StatusOr<T> Decode(std::span<const std::byte> message, ReplicaKind kind, const char* what) {
  if (message.size() != sizeof(T)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s of %u bytes, %u expected", what, message.size(), sizeof(T)));
  }
  T copy;
  std::memcpy(&copy, message.data(), sizeof(T));
  if (copy.header.magic != kReplicaMagic || copy.header.kind != static_cast<uint16_t>(kind) ||
      copy.header.length != sizeof(T)) {
    return absl::InvalidArgumentError(absl::StrFormat("the header is not that of a %s", what));
  }
  if (const char* const wrong = WhatIsWrong(copy)) {
    return absl::InvalidArgumentError(absl::StrFormat("%s with %s", what, wrong));
  }
  return copy;
}

}  // namespace

ReplicaHello NewReplicaHello() { return NewHello<ReplicaHello>(ReplicaKind::kHello); }
ReceiverHello NewReceiverHello() { return NewHello<ReceiverHello>(ReplicaKind::kReceiverHello); }
MoveClosing NewMoveClosing() { return New<MoveClosing>(ReplicaKind::kClosing); }
MoveEnded NewMoveEnded() { return New<MoveEnded>(ReplicaKind::kEnded); }
ReplicaWelcome NewReplicaWelcome() { return New<ReplicaWelcome>(ReplicaKind::kWelcome); }
Beacon NewBeacon(ReplicaKind kind) { return New<Beacon>(kind); }
BeaconAnswer NewBeaconAnswer() { return New<BeaconAnswer>(ReplicaKind::kBeaconAnswer); }
ReplicaResume NewReplicaResume() { return New<ReplicaResume>(ReplicaKind::kResume); }
ReplicaReady NewReplicaReady() { return New<ReplicaReady>(ReplicaKind::kReady); }

ReplicaRefusal NewReplicaRefusal(std::string_view reason) {
  ReplicaRefusal refusal = New<ReplicaRefusal>(ReplicaKind::kRefusal);
  reason = reason.substr(0, sizeof(refusal.reason));
  std::ranges::transform(reason, refusal.reason,
                         [](char c) { return c >= ' ' && c <= '~' ? c : '?'; });
  return refusal;
}

std::string_view ReasonOf(const ReplicaRefusal& refusal) {
  return {refusal.reason, strnlen(refusal.reason, sizeof(refusal.reason))};
}

std::optional<ReplicaKind> KindOfReplicaMessage(std::span<const std::byte> message) {
  ReplicaHeader header;
  if (message.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, message.data(), sizeof(header));
  const bool known = header.kind >= static_cast<uint16_t>(ReplicaKind::kHello) &&
                     header.kind <= static_cast<uint16_t>(ReplicaKind::kResume);
  if (header.magic != kReplicaMagic || !known) return std::nullopt;
  return static_cast<ReplicaKind>(header.kind);
}

void SetName(ReplicaHello* hello, std::string_view name) { SetNameIn(hello, name); }
std::string_view NameOf(const ReplicaHello& hello) { return NameIn(hello); }
void SetName(ReceiverHello* hello, std::string_view name) { SetNameIn(hello, name); }
std::string_view NameOf(const ReceiverHello& hello) { return NameIn(hello); }

absl::StatusOr<ReplicaHello> DecodeReplicaHello(std::span<const std::byte> message) {
  return Decode<ReplicaHello>(message, ReplicaKind::kHello, "hello of a replica");
}
absl::StatusOr<ReplicaWelcome> DecodeReplicaWelcome(std::span<const std::byte> message) {
  return Decode<ReplicaWelcome>(message, ReplicaKind::kWelcome, "welcome to a replica");
}
absl::StatusOr<Beacon> DecodeBeacon(std::span<const std::byte> message) {
  return Decode<Beacon>(message, ReplicaKind::kBeacon, "beacon");
}
absl::StatusOr<Beacon> DecodeLastBeacon(std::span<const std::byte> message) {
  return Decode<Beacon>(message, ReplicaKind::kLastBeacon, "last beacon");
}
absl::StatusOr<BeaconAnswer> DecodeBeaconAnswer(std::span<const std::byte> message) {
  return Decode<BeaconAnswer>(message, ReplicaKind::kBeaconAnswer, "answer to a beacon");
}

absl::StatusOr<ReplicaResume> DecodeReplicaResume(std::span<const std::byte> message) {
  return Decode<ReplicaResume>(message, ReplicaKind::kResume, "word of a backup that goes on");
}
absl::StatusOr<ReplicaReady> DecodeReplicaReady(std::span<const std::byte> message) {
  return Decode<ReplicaReady>(message, ReplicaKind::kReady, "word of a joiner that is ready");
}
absl::StatusOr<ReplicaRefusal> DecodeReplicaRefusal(std::span<const std::byte> message) {
  return Decode<ReplicaRefusal>(message, ReplicaKind::kRefusal, "refusal of a replica");
}
absl::StatusOr<ReceiverHello> DecodeReceiverHello(std::span<const std::byte> message) {
  return Decode<ReceiverHello>(message, ReplicaKind::kReceiverHello, "hello of a receiver");
}
absl::StatusOr<MoveClosing> DecodeMoveClosing(std::span<const std::byte> message) {
  return Decode<MoveClosing>(message, ReplicaKind::kClosing, "word of a receiver that will close");
}
absl::StatusOr<MoveEnded> DecodeMoveEnded(std::span<const std::byte> message) {
  return Decode<MoveEnded>(message, ReplicaKind::kEnded, "word of an end of partitions");
}

}  // namespace gannet
