#ifndef GANNET_COMMON_PROTOCOL_REPLICA_H_
#define GANNET_COMMON_PROTOCOL_REPLICA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "absl/status/statusor.h"
#include "common/protocol/limits.h"

namespace gannet {

// The messages between a primary and a backup of a group, on their control connection. A backup
// says hello, and the primary welcomes it, or refuses it. Then the primary sends beacons, and the
// backup answers them. A joiner says when it is ready. docs/protocol.md has the layouts byte by
// byte, and docs/group.md what they are for.
//
// A receiver, to whose group partitions move (docs/partitions.md), says another hello. It is
// welcomed, hears beacons and answers them as a backup does, and there are two messages more.
//
// A record's LSN is the number of bytes of all records before it. A position counts the bytes of a
// ring: it grows for ever, and its remainder by the ring's length is where in the ring it is.

inline constexpr uint32_t kReplicaMagic = 0x50524e47;  // "GNRP"

enum class ReplicaKind : uint16_t {
  kHello = 1,
  kWelcome = 2,
  kBeacon = 3,
  kBeaconAnswer = 4,
  kReady = 5,
  kRefusal = 6,
  kReceiverHello = 7,
  kClosing = 8,
  kEnded = 9,
  kLastBeacon = 10,
  kResume = 11,
};

// The length of a ring, a multiple of kRingAlignment.
inline constexpr uint64_t kRingAlignment = 4096;
inline constexpr uint64_t kRingBytesMin = 1 << 20;
inline constexpr uint64_t kRingBytesMax = 1 << 30;
// How long a primary's lease may be.
inline constexpr uint32_t kPrimaryLeaseMsMin = 200;
inline constexpr uint32_t kPrimaryLeaseMsMax = 10'000;

// Each message begins with this.
struct ReplicaHeader {
  uint32_t magic;
  uint16_t kind;    // ReplicaKind
  uint16_t length;  // of the whole message
};
static_assert(sizeof(ReplicaHeader) == 8);

// A backup to the primary: who it is, what it has, and where its ring is.
struct ReplicaHello {
  ReplicaHeader header;
  uint64_t incarnation;
  uint64_t history;  // of its items; 0 = it has none, and joins
  uint64_t epoch;    // the newest that it knows
  uint64_t applied;  // it has applied all records that end at this LSN or before
  uint64_t end;      // and has all that end here or before
  uint64_t ring_address;
  uint64_t ring_bytes;
  uint32_t ring_rkey;
  uint32_t layout_version;  // the newest that it can READ
  uint64_t memory_bytes;    // members have equal memory,
  uint32_t workers;         // and equally many workers
  uint16_t stream_version_min;
  uint16_t stream_version_max;
  char name[kServerNameBytesMax];  // NUL padded
};
static_assert(sizeof(ReplicaHello) == 120 && std::is_trivially_copyable_v<ReplicaHello>);
static_assert(offsetof(ReplicaHello, ring_address) == 48 &&
              offsetof(ReplicaHello, ring_rkey) == 64 &&
              offsetof(ReplicaHello, memory_bytes) == 72 &&
              offsetof(ReplicaHello, stream_version_min) == 84 &&
              offsetof(ReplicaHello, name) == 88);

// The primary's answer: where its stream begins.
struct ReplicaWelcome {
  ReplicaHeader header;
  uint64_t incarnation;
  uint64_t history;
  uint64_t epoch;
  uint64_t stream_id;  // seed of the records' checksums
  uint64_t first_lsn;  // of the first record that the ring gets
  // Where the primary's tail ends. A survivor keeps the rest of its own tail until the stream has
  // come so far.
  uint64_t tail_end;
  uint64_t position;      // of the first record in the ring
  uint64_t version_next;  // higher than each version that the primary has given or received
  uint64_t clock_ms;      // by which items expire
  uint32_t lease_ms;
  uint16_t stream_version;  // one that the backup speaks
  uint16_t reserved;
};
static_assert(sizeof(ReplicaWelcome) == 88 && std::is_trivially_copyable_v<ReplicaWelcome>);
static_assert(offsetof(ReplicaWelcome, stream_id) == 32 &&
              offsetof(ReplicaWelcome, position) == 56 &&
              offsetof(ReplicaWelcome, lease_ms) == 80 &&
              offsetof(ReplicaWelcome, stream_version) == 84);

// The primary to a backup. A last beacon is one, too: the primary has stopped for a hand-over, and
// judges no expiry by a later time of its clock, unless beacons that are not last follow. Only
// streams of kStreamVersionOfLastBeacons have it.
struct Beacon {
  ReplicaHeader header;
  uint64_t epoch;
  uint64_t sequence;   // from 1
  uint64_t committed;  // all records that end at this LSN or before are committed
  uint64_t clock_ms;
};
static_assert(sizeof(Beacon) == 40 && std::is_trivially_copyable_v<Beacon>);

struct BeaconAnswer {
  ReplicaHeader header;
  uint64_t epoch;     // the beacon's
  uint64_t sequence;  // the beacon's
  uint64_t applied;   // LSN
  uint64_t consumed;  // position: the ring is free up to here
};
static_assert(sizeof(BeaconAnswer) == 40 && std::is_trivially_copyable_v<BeaconAnswer>);

// A joiner to the primary: it has all items but those that the stream still brings.
struct ReplicaReady {
  ReplicaHeader header;
  uint64_t epoch;
};
static_assert(sizeof(ReplicaReady) == 16 && std::is_trivially_copyable_v<ReplicaReady>);

// A backup whose link to this primary is over, to the same one over another rail: from where to go
// on, and where its new ring is. The answer is a welcome that begins there. Only a primary that
// announces several rails is told (docs/rails.md).
struct ReplicaResume {
  ReplicaHeader header;
  uint64_t incarnation;
  uint64_t epoch;     // of the primary
  uint64_t lsn;       // it has taken all records of the primary's stream that end here or before
  uint64_t position;  // of the next one, or of the wrap before it, in the ring
  uint64_t ring_address;
  uint64_t ring_bytes;
  uint32_t ring_rkey;
  uint32_t reserved;
};
static_assert(sizeof(ReplicaResume) == 64 && std::is_trivially_copyable_v<ReplicaResume>);
static_assert(offsetof(ReplicaResume, position) == 32 && offsetof(ReplicaResume, ring_rkey) == 56);

// The primary to a backup: why it is not welcome. Nothing follows.
struct ReplicaRefusal {
  ReplicaHeader header;
  char reason[120];  // printable ASCII, NUL padded
};
static_assert(sizeof(ReplicaRefusal) == 128 && std::is_trivially_copyable_v<ReplicaRefusal>);

// A receiver to the giver's primary: who it is, and where its ring is.
struct ReceiverHello {
  ReplicaHeader header;
  uint64_t incarnation;
  uint64_t ring_address;
  uint64_t ring_bytes;
  uint32_t ring_rkey;
  uint32_t layout_version;  // the newest that it can READ
  uint16_t stream_version_min;
  uint16_t stream_version_max;
  uint32_t reserved;
  char name[kServerNameBytesMax];  // NUL padded
};
static_assert(sizeof(ReceiverHello) == 80 && std::is_trivially_copyable_v<ReceiverHello>);
static_assert(offsetof(ReceiverHello, ring_address) == 16 &&
              offsetof(ReceiverHello, ring_rkey) == 32 &&
              offsetof(ReceiverHello, stream_version_min) == 40 &&
              offsetof(ReceiverHello, name) == 48);

// A receiver to the giver's primary: it has nearly all, and will close the partitions soon.
struct MoveClosing {
  ReplicaHeader header;
  uint64_t epoch;  // the welcome's
};
static_assert(sizeof(MoveClosing) == 16 && std::is_trivially_copyable_v<MoveClosing>);

// The giver's primary to a receiver, of the partitions that are closed by the map of a revision.
// All requests for them are over, all records of them end at an LSN or before and are committed,
// and no lease is left of older maps.
struct MoveEnded {
  ReplicaHeader header;
  uint64_t epoch;
  uint64_t revision;  // the map's
  uint64_t lsn;
  uint64_t version_next;  // higher than each version that the giver has given in them
};
static_assert(sizeof(MoveEnded) == 40 && std::is_trivially_copyable_v<MoveEnded>);

// No message is longer.
inline constexpr size_t kReplicaMessageBytesMax = 128;
static_assert(sizeof(ReplicaHello) <= kReplicaMessageBytesMax &&
              sizeof(ReplicaRefusal) <= kReplicaMessageBytesMax);

// Return a message with its header filled in, and a hello with this program's versions; the rest is
// zero.
ReplicaHello NewReplicaHello();
ReplicaWelcome NewReplicaWelcome();
Beacon NewBeacon(ReplicaKind kind = ReplicaKind::kBeacon);  // or kLastBeacon
BeaconAnswer NewBeaconAnswer();
ReplicaReady NewReplicaReady();
ReplicaResume NewReplicaResume();
// Cuts `reason` to fit, and replaces unprintable bytes by '?'.
ReplicaRefusal NewReplicaRefusal(std::string_view reason);
ReceiverHello NewReceiverHello();
MoveClosing NewMoveClosing();
MoveEnded NewMoveEnded();
std::string_view ReasonOf(const ReplicaRefusal& refusal);
// Returns what a message says it is, or nullopt if it is none of the above. The decoders check the
// rest.
std::optional<ReplicaKind> KindOfReplicaMessage(std::span<const std::byte> message);

void SetName(ReplicaHello* hello, std::string_view name);
std::string_view NameOf(const ReplicaHello& hello);
void SetName(ReceiverHello* hello, std::string_view name);
std::string_view NameOf(const ReceiverHello& hello);

// Each decoder copies, then checks. InvalidArgument says what is wrong.
absl::StatusOr<ReplicaHello> DecodeReplicaHello(std::span<const std::byte> message);
absl::StatusOr<ReplicaWelcome> DecodeReplicaWelcome(std::span<const std::byte> message);
absl::StatusOr<Beacon> DecodeBeacon(std::span<const std::byte> message);
absl::StatusOr<Beacon> DecodeLastBeacon(std::span<const std::byte> message);
absl::StatusOr<BeaconAnswer> DecodeBeaconAnswer(std::span<const std::byte> message);
absl::StatusOr<ReplicaResume> DecodeReplicaResume(std::span<const std::byte> message);
absl::StatusOr<ReplicaReady> DecodeReplicaReady(std::span<const std::byte> message);
absl::StatusOr<ReplicaRefusal> DecodeReplicaRefusal(std::span<const std::byte> message);
absl::StatusOr<ReceiverHello> DecodeReceiverHello(std::span<const std::byte> message);
absl::StatusOr<MoveClosing> DecodeMoveClosing(std::span<const std::byte> message);
absl::StatusOr<MoveEnded> DecodeMoveEnded(std::span<const std::byte> message);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_REPLICA_H_
