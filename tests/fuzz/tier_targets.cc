// What a disk behind the memory gives, and the stubs that lead there.

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/hash.h"
#include "common/layout/item_proof.h"
#include "common/layout/stub.h"
#include "server/memory/tier/tier_format.h"
#include "tests/fuzz/fuzz_targets.h"

namespace gannet::fuzz {
namespace {

constexpr uint64_t kTierNumber = 0x1122334455667788;
constexpr uint32_t kLap = 3;
constexpr uint64_t kListBytesMax = 4 * kTierBlockBytes;

// Returns the bytes behind the first one, with zeros up to so many.
std::vector<std::byte> BlocksOf(std::span<const std::byte> bytes, size_t size) {
  std::vector<std::byte> blocks(size);
  const auto given = bytes.subspan(1, std::min(bytes.size() - 1, size));
  std::ranges::copy(given, blocks.begin());
  return blocks;
}

bool MakesRight(std::span<const std::byte> bytes) {
  return (bytes[0] & std::byte{1}) != std::byte{0};
}

}  // namespace

void StubBytesRead(std::span<const std::byte> bytes) {
  constexpr ItemPlace kPlace = {.incarnation = 1, .hash_seed = 2, .offset = 4096};
  constexpr std::string_view kKey = "key";
  const KeyHash hash = KeyHash::Of(kKey, kPlace.hash_seed);
  if (bytes.empty()) return;
  std::vector<std::byte> copy(bytes.begin() + 1, bytes.end());
  if (MakesRight(bytes) && copy.size() >= StubBytes(kKey.size())) {
    ItemHeader header;
    std::memcpy(&header, copy.data(), sizeof(header));
    if (ItemBytes(header.key_bytes(), header.value_bytes) <= copy.size()) {
      header.commit =
          LiveCommitWord(copy.data(), header.value_bytes, ItemSeal(hash, StubPlace(kPlace)));
      std::memcpy(copy.data(), &header.commit, sizeof(header.commit));
    }
  }
  ItemView view;
  if (ProveItem(copy, StubPlace(kPlace), kKey, hash, &view) != ItemProof::kThisKey) return;
  RequireWithin(view.value, copy);
  ItemView item;
  Require(ProveItem(copy, kPlace, kKey, hash, &item) == ItemProof::kTorn, "a stub is an item");
  const std::optional<StubValue> stub = DecodeStub(view.value);
  if (!stub) return;
  StubValue again{};
  again.kind = StubValue::kOnDisk;
  again.value_bytes = stub->value_bytes;
  again.tier = stub->tier;
  again.lap = stub->lap;
  again.position = stub->position;
  again.version = stub->version;
  RequireSameBytes(std::as_bytes(std::span(&again, 1)), std::as_bytes(std::span(view.value)));
}

void TierHeaderBytes(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::vector<std::byte> block = BlocksOf(bytes, kTierBlockBytes);
  TierHeader header;
  std::memcpy(&header, block.data(), sizeof(header));
  if (MakesRight(bytes)) {
    header.checksum = Xxh3(&header, offsetof(TierHeader, checksum), 0);
    std::memcpy(block.data(), &header, sizeof(header));
  }
  const std::span<const std::byte, kTierBlockBytes> proved(block);
  if (ProveTierHeader(proved, &header) != TierHeaderProof::kOk) return;
  std::vector<std::byte> again(kTierBlockBytes);
  EncodeTierHeader(header.tier, header.segment_bytes, header.segments,
                   std::span<std::byte, kTierBlockBytes>(again));
  const size_t fields = offsetof(TierHeader, header_bytes);
  RequireSameBytes(std::span(again).first(fields), proved.first(fields));
}

void TierRecordBytesRead(std::span<const std::byte> bytes) {
  constexpr std::string_view kKey = "key";
  constexpr TierPlace kPlace = {
      .position = 8192, .lap = kLap, .value_bytes = 20, .version = 0x1234567};
  if (bytes.empty()) return;
  constexpr uint64_t kBytes = TierRecordBytes(kKey.size(), kPlace.value_bytes);
  std::vector<std::byte> record = BlocksOf(bytes, kBytes);
  if (MakesRight(bytes)) {
    constexpr size_t kBegin = sizeof(TierRecordHeader::checksum);
    const uint64_t end = TierValueOffset(kKey.size()) + kPlace.value_bytes;
    const uint64_t checksum = Xxh3(record.data() + kBegin, end - kBegin, kTierNumber);
    std::memcpy(record.data(), &checksum, sizeof(checksum));
  }
  const std::optional<std::string_view> value = ProveTierRecord(record, kTierNumber, kPlace, kKey);
  if (!value) return;
  RequireWithin(*value, record);
  Require(value->size() == kPlace.value_bytes, "another length");
  // No other place, key or tier is proved by it.
  TierPlace later = kPlace, other_lap = kPlace, elsewhere = kPlace;
  ++later.version;
  ++other_lap.lap;
  elsewhere.position += kTierRecordAlignment;
  for (const TierPlace& other : {later, other_lap, elsewhere}) {
    Require(!ProveTierRecord(record, kTierNumber, other, kKey), "the record of another place");
  }
  Require(!ProveTierRecord(record, kTierNumber, kPlace, "kez"), "the record of another key");
  Require(!ProveTierRecord(record, kTierNumber + 1, kPlace, kKey), "the record of another tier");
}

void TierListBytesRead(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(TierListEnd) + 1) return;
  const auto given = bytes.subspan(1);
  // The end lies at the end of the last block.
  TierListEnd end;
  std::memcpy(&end, given.last(sizeof(end)).data(), sizeof(end));
  std::vector<std::byte> blocks(kListBytesMax);
  const auto entries_given = given.first(std::min(given.size() - sizeof(end), kListBytesMax));
  const bool fits = TierListBytes(end.entries) <= kListBytesMax;
  const size_t list_bytes = fits ? TierListBytes(end.entries) : kListBytesMax;
  const std::span<std::byte> list = std::span(blocks).last(list_bytes);
  std::copy_n(entries_given.begin(), std::min(entries_given.size(), list.size() - sizeof(end)),
              list.begin());
  if (MakesRight(bytes) && fits) {
    const uint64_t seed = Xxh3(&end, offsetof(TierListEnd, checksum), 0);
    end.checksum = Xxh3(list.data(), end.entries * sizeof(TierListEntry), seed);
  }
  std::memcpy(list.last(sizeof(end)).data(), &end, sizeof(end));
  const std::span<const std::byte, kTierBlockBytes> last{list.last(kTierBlockBytes)};
  const std::optional<uint32_t> entries = TierListEntries(last, kTierNumber, kLap, kListBytesMax);
  if (!entries) return;
  Require(TierListBytes(*entries) <= kListBytesMax, "a list before its segment");
  const auto decoded = DecodeTierList(std::span(blocks).last(TierListBytes(*entries)), *entries);
  if (!decoded) return;
  Require(decoded->size() == *entries, "another number of entries");
  std::vector<std::byte> again(list_bytes);
  EncodeTierList(kTierNumber, kLap, *decoded, again);
  const size_t used = decoded->size() * sizeof(TierListEntry);
  RequireSameBytes(std::span(again).first(used), list.first(used));
  RequireSameBytes(std::span(again).last(sizeof(end)), list.last(sizeof(end)));
}

}  // namespace gannet::fuzz
