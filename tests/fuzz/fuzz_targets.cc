#include "tests/fuzz/fuzz_targets.h"

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/auth/parse_auth_keys.h"
#include "common/base/hash.h"
#include "common/layout/item_proof.h"
#include "common/layout/superblock.h"
#include "common/protocol/announce.h"
#include "common/protocol/client_report.h"
#include "common/protocol/connect.h"
#include "common/protocol/member_standing.h"
#include "common/protocol/message.h"
#include "common/protocol/not_primary.h"
#include "common/protocol/plain_put.h"
#include "common/protocol/replica.h"
#include "proxy/protocol/memcached_binary.h"
#include "proxy/protocol/memcached_parser.h"
#include "proxy/protocol/resp_parser.h"
#include "server/log/changes/record.h"
#include "server/log/stream/ring_record.h"
#include "tests/common/protocol/encode_reply.h"
#include "tests/server/log/stream/seal_update.h"

namespace gannet::fuzz {
void ConnectRequestBytes(std::span<const std::byte> bytes) {
  const auto request = DecodeConnectRequest(bytes);
  if (!request.ok()) return;
  Require(request->magic == kConnectMagic, "another magic");
  Require(request->length <= bytes.size(), "a length beyond the private data");
  Require(request->version_min <= request->version_max, "no version");
}

void GrantBytes(std::span<const std::byte> bytes) {
  const auto grant = DecodeGrant(bytes);
  if (!grant.ok() || grant->layout_version != kLayoutVersion) return;
  Require(grant->length <= bytes.size(), "a length beyond the private data");
  const IndexGeometry& index = grant->index;
  Require(index.homes > 0 && index.stash_homes > 0, "an index without homes");
  const uint64_t last = index.BucketOffset(index.buckets() - 1);
  Require(last >= index.offset && last <= grant->region_bytes - kBucketBytes,
          "a bucket outside the region");
  Require(grant->lock_words > 0, "no lock words");
}

void RejectBytes(std::span<const std::byte> bytes) {
  const auto reject = DecodeReject(bytes);
  if (!reject.ok()) return;
  const std::string reason = RejectReason(*reject);
  Require(reason.size() <= sizeof(reject->reason), "too long a reason");
  for (const char c : reason) Require(c >= 0x20 && c < 0x7f, "an unprintable reason");
  if (const auto elsewhere = ParseNotPrimary(reason)) {
    Require(ReasonOf(*elsewhere) == reason, "a primary that nobody names so");
  }
  if (const auto standing = ParseMemberStanding(reason)) {
    Require(reason.starts_with(ReasonOf(*standing)), "a standing that nobody tells so");
  }
}

void RequestBytes(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(RequestHeader)) return;
  RequestView view;
  PlainPut put;
  const bool plain = put.Decode(bytes);
  if (DecodeRequest(bytes, &view)) return Require(!plain, "as a plain PUT what is none");
  const RequestHeader& header = view.header;
  Require(plain == (header.opcode == static_cast<uint8_t>(Opcode::kPut) && header.flags == 0 &&
                    header.write.ttl_ms == 0),
          "another plain PUT");
  if (plain) {
    Require(put.sequence() == header.sequence && put.TakeUserFlags() == header.write.user_flags,
            "another header");
    Require(put.key() == view.key && put.value() == view.value, "another key or value");
  }
  RequireWithin(view.key, bytes);
  RequireWithin(view.value, bytes);
  Require(view.key.size() == view.header.key_bytes, "another key length");
  Require(view.key.size() <= kKeyBytesMax, "too long a key");
  Require(view.header.value_bytes <= kValueBytesMax, "too long a value");
  Require(header.opcode != static_cast<uint8_t>(Opcode::kIncrement) ||
              view.value.size() == sizeof(CounterOperands),
          "an increment without operands");
  std::vector<std::byte> again(bytes.size());
  EncodeRequest(view.header, view.key, view.value, again);
  RequireSameBytes(again, bytes);
}

void ReplyBytes(std::span<const std::byte> bytes) {
  ReplyView view;
  if (!DecodeReply(bytes, &view)) return;
  RequireWithin(view.value, bytes);
  Require(view.header.value_bytes <= kValueBytesMax, "too long a value");
  std::vector<std::byte> again(bytes.size());
  EncodeReply(view.header, view.value, again);
  RequireSameBytes(again, bytes);
}

void AnnounceBytesRead(std::span<const std::byte> bytes) {
  const auto it = DecodeAnnouncement(bytes);
  if (!it.ok()) return;
  Require(CanAnnounce(*it), "an announcement that no server can make");
  const AnnounceBytes again = EncodeAnnouncement(*it);
  Require(std::memcmp(&again, bytes.data(), sizeof(again)) == 0,
          "other bytes for one announcement");
}

void ReplicaBytes(std::span<const std::byte> bytes) {
  if (const auto hello = DecodeReplicaHello(bytes); hello.ok()) {
    Require(hello->ring_bytes >= kRingBytesMin && hello->ring_bytes <= kRingBytesMax,
            "a ring of a wrong length");
    Require(hello->ring_address + hello->ring_bytes > hello->ring_address, "a ring beyond memory");
    Require(hello->applied <= hello->end, "more applied than received");
    Require(IsServerName(NameOf(*hello)), "a name that none is");
  }
  if (const auto welcome = DecodeReplicaWelcome(bytes); welcome.ok()) {
    Require(welcome->first_lsn <= welcome->tail_end, "a tail before the stream");
    Require(welcome->stream_id != 0 && welcome->epoch != 0, "no stream or epoch");
    Require(welcome->lease_ms <= kPrimaryLeaseMsMax, "too long a lease");
  }
  if (const auto hello = DecodeReceiverHello(bytes); hello.ok()) {
    Require(hello->ring_address + hello->ring_bytes > hello->ring_address, "a ring beyond memory");
    Require(IsServerName(NameOf(*hello)), "a name that none is");
  }
  if (const auto ended = DecodeMoveEnded(bytes); ended.ok()) {
    Require(ended->revision != 0 && ended->lsn % sizeof(uint64_t) == 0, "an end of nothing");
  }
  const bool beacon = DecodeBeacon(bytes).ok();
  const bool answer = DecodeBeaconAnswer(bytes).ok();
  const bool last = DecodeLastBeacon(bytes).ok();
  Require(int{beacon} + int{answer} + int{last} <= 1, "a beacon that is something else, too");
}

void ClientReportBytes(std::span<const std::byte> bytes) {
  const auto report = ClientReportView::Decode(TextOf(bytes));
  if (!report) return;
  RequireWithin(report->latencies, bytes);
  Require(report->counts.hits <= kClientCountMax, "a count that no client has");
  report->ForEachLatency([](LatencyCount it) {
    Require(it.kind() < kLatencyKinds && it.bucket() < LatencyBucket::kCount,
            "a latency outside of the counters");
  });
}

void SuperblockBytes(std::span<const std::byte> bytes) {
  Superblock superblock;
  if (bytes.size() < sizeof(superblock)) return;
  std::memcpy(&superblock, bytes.data(), sizeof(superblock));
  // Makes the checksum right, which a fuzzer cannot guess, but a hostile server can write.
  superblock.checksum = SuperblockChecksum(superblock);
  if (!SuperblockValid(superblock)) return;
  const IndexGeometry& index = superblock.index;
  const uint64_t last = index.BucketOffset(index.buckets() - 1);
  Require(last >= index.offset && last <= superblock.region_bytes - kBucketBytes,
          "a bucket outside the region");
}

void ItemBytesRead(std::span<const std::byte> bytes) {
  constexpr ItemPlace kPlace = {.incarnation = 1, .hash_seed = 2, .offset = 4096};
  constexpr std::string_view kKey = "key";
  if (bytes.empty()) return;
  std::vector<std::byte> copy(bytes.begin() + 1, bytes.end());
  const bool make_right = (bytes[0] & std::byte{1}) != std::byte{0};
  if (make_right && copy.size() >= sizeof(ItemHeader)) {
    ItemHeader header;
    std::memcpy(&header, copy.data(), sizeof(header));
    if (ItemBytes(header.key_bytes(), header.value_bytes) <= copy.size()) {
      const std::string_view key(
          reinterpret_cast<const char*>(copy.data()) + sizeof(header) + header.value_bytes,
          header.key_bytes());
      header.commit = LiveCommitWord(copy.data(), header.value_bytes,
                                     ItemSeal(KeyHash::Of(key, kPlace.hash_seed), kPlace));
      std::memcpy(copy.data(), &header.commit, sizeof(header.commit));
    }
  }
  ItemView view;
  const ItemProof proof = ProveItem(copy, kPlace, kKey, KeyHash::Of(kKey, kPlace.hash_seed), &view);
  if (proof != ItemProof::kThisKey && proof != ItemProof::kOtherKey) return;
  RequireWithin(view.key, copy);
  RequireWithin(view.value, copy);
  Require((proof == ItemProof::kThisKey) == (view.key == kKey), "another key");
}

void JournalRecordBytes(std::span<const std::byte> bytes) {
  constexpr uint64_t kJournal = 0x1122334455667788;
  constexpr uint64_t kPosition = 0x4000;
  if (bytes.size() < sizeof(RecordHeader)) return;
  const std::optional<size_t> length = LengthOfRecord(bytes);
  if (length && *length <= bytes.size()) bytes = bytes.first(*length);
  const std::optional<RecordView> view = DecodeRecord(bytes, kJournal, kPosition);
  if (!view) return;
  Require(length == bytes.size(), "another length");
  RequireWithin(view->change.key, bytes);
  RequireWithin(view->change.value, bytes);
  std::vector<std::byte> again(bytes.size());
  EncodeRecord(view->change, kJournal, kPosition, view->synced, again);
  RequireSameBytes(again, bytes);
}

void RingRecordBytes(std::span<const std::byte> bytes) {
  constexpr RingRecordPlace kPlace = {.stream_id = 0x1122334455667788, .lsn = 0x4000};
  if (bytes.size() < 1 + sizeof(RingRecordStart)) return;
  std::vector<std::byte> copy(bytes.begin() + 1, bytes.end());
  RingRecordStart start;
  std::memcpy(&start, copy.data(), sizeof(start));
  const std::optional<size_t> length = LengthOfRingRecord(start);
  if (length && *length < copy.size()) copy.resize(*length);
  if ((bytes[0] & std::byte{1}) != std::byte{0}) {
    const uint64_t checksum = Xxh3(copy.data() + sizeof(uint64_t), copy.size() - sizeof(uint64_t),
                                   Mix64(kPlace.stream_id ^ Mix64(kPlace.lsn)));
    std::memcpy(copy.data(), &checksum, sizeof(checksum));
    if (start.kind == static_cast<uint8_t>(RingRecordKind::kUpdate)) SealUpdate(copy, kPlace);
  }
  const std::optional<RingRecordView> view = DecodeRingRecord(copy, kPlace);
  if (!view) return;
  Require(length == copy.size(), "another length");
  RequireWithin(view->record.change.key, copy);
  RequireWithin(view->record.change.value, copy);
  RequireWithin(view->record.part, copy);
  RequireWithin(view->record.session.answers, copy);
  std::vector<std::byte> again(view->record.bytes());
  EncodeRingRecord(view->record, kPlace, view->committed, again);
  RequireSameBytes(again, copy);
}

// Keys that were accepted are written as lines and parsed again: nothing of them may get lost.
void AuthFileBytes(std::span<const std::byte> bytes) {
  const auto keys = ParseAuthKeys(TextOf(bytes), "file");
  if (!keys.ok()) return;
  Require(!keys->empty() && keys->size() <= kAuthKeysMax, "no keys, or too many");
  std::string again;
  for (const AuthKey& key : *keys) {
    Require(key.id != 0, "the id 0");
    Require(key.secret.size() >= AuthKey::kSecretBytesMin, "a short secret");
    Require(key.secret.size() <= AuthKey::kSecretBytesMax, "a long secret");
    again += std::to_string(key.id) + " ";
    for (const char c : key.secret) {
      constexpr char kDigits[] = "0123456789ABCDEF";
      again += kDigits[static_cast<uint8_t>(c) >> 4];
      again += kDigits[static_cast<uint8_t>(c) & 15];
    }
    if (key.read_only) again += key.replica ? " replica" : " read";
    again += "\n";
  }
  const auto same = ParseAuthKeys(again, "again");
  Require(same.ok() && *same == *keys, "keys that are not the file's");
}

namespace {

// Takes command after command. Each must lie within its own bytes, or within its rewritten line,
// and must not be decided by fewer bytes: the proxy asks with what has come so far.
void TakeCommands(std::span<const std::byte> bytes,
                  proxy::Parsed (*parse)(std::string_view, proxy::ParsedCommand*)) {
  using Outcome = proxy::Parsed::Outcome;
  while (!bytes.empty()) {
    const std::string_view input = TextOf(bytes);
    proxy::ParsedCommand command;
    const proxy::Parsed parsed = parse(input, &command);
    if (parsed.outcome == Outcome::kBroken) return;
    if (parsed.outcome == Outcome::kNeedsMore) {
      return Require(parsed.needed > input.size(), "no more bytes than there are");
    }
    Require(parsed.consumed > 0, "a command of no bytes");
    if (parsed.outcome == Outcome::kRefused) {
      Require(!parsed.error.empty(), "a refusal without an answer");
      if (parsed.consumed >= input.size()) return;
    } else {
      Require(parsed.consumed <= input.size(), "a command beyond the input");
      const auto own = bytes.first(parsed.consumed);
      const std::span<const char> rewritten(command.rewritten);
      const auto of_words = rewritten.empty() ? own : std::as_bytes(rewritten);
      for (const std::string_view word : command.words) RequireWithin(word, of_words);
      RequireWithin(command.data, own);
      const proxy::Parsed less = parse(input.substr(0, parsed.consumed - 1), &command);
      Require(less.outcome == Outcome::kNeedsMore && less.needed <= parsed.consumed,
              "a command before it was complete");
    }
    bytes = bytes.subspan(parsed.consumed);
  }
}

}  // namespace

void MemcachedTextBytes(std::span<const std::byte> bytes) {
  TakeCommands(bytes, proxy::ParseMemcached);
}

void MemcachedBinaryBytes(std::span<const std::byte> bytes) {
  TakeCommands(bytes, proxy::ParseMemcachedBinary);
}

void RespBytes(std::span<const std::byte> bytes) { TakeCommands(bytes, proxy::ParseResp); }

}  // namespace gannet::fuzz
