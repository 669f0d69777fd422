// A memory file that a process left, with edits, also one with stubs: what is taken over must be
// what was there, or less.

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/words.h"
#include "server/memory/recovery/recovery_area.h"
#include "server/memory/store/store.h"
#include "server/memory/store/stubs.h"
#include "server/writes/writes.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/server/memory/store/at.h"

namespace gannet::fuzz {
namespace {

constexpr size_t kRegionBytes = 768 << 10;
constexpr uint64_t kIncarnation = 0x1111222233334444;
constexpr uint64_t kNowMs = 1'000;

// Memory that begins on a page, as a mapped file does.
class Region {
 public:
  Region()
      : bytes_(static_cast<std::byte*>(mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
               kRegionBytes) {}
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  const std::span<std::byte> bytes_;
};

using Values = std::map<std::string, std::string>;

constexpr TierOfStore kTierOfFile{.number = 77, .segment_bytes = 64 << 20, .segments = 16};

absl::StatusOr<std::unique_ptr<Store>> Open(std::span<std::byte> region, uint64_t incarnation,
                                            bool stubs) {
  static const std::vector<uint64_t> lock_words(64);
  return Store::Create({.region = region,
                        .lock_words = lock_words,
                        .index_slots = 64,
                        .incarnation = incarnation,
                        .hash_seed = 42,
                        .first_version = 1000,
                        .evict = stubs,
                        .tier = stubs ? std::optional(kTierOfFile) : std::nullopt,
                        .memory_file = true});
}

// Of a stub: where the value is.
std::optional<std::string> ValueOf(Store& store, const std::string& key) {
  std::string value(1 << 16, '\0');
  const ReadOutcome read = store.Get(key, std::as_writable_bytes(std::span(value)), At(kNowMs));
  if (read.on_disk) {
    return absl::StrCat("on disk ", read.on_disk->position, " ", read.on_disk->lap, " ",
                        read.on_disk->version, " ", read.on_disk->value_bytes);
  }
  if (read.status != ReplyStatus::kOk) return std::nullopt;
  return value.substr(0, read.value_bytes);
}

// The file, and what is in it. Keys have a state of each kind: new, replaced, touched, deleted,
// with a time to live; the last one is large. Of those with stubs, every second one is on the disk.
struct Image {
  explicit Image(bool stubs) {
    auto store = Open(region.bytes(), kIncarnation, stubs);
    Require(store.ok(), "it cannot be made");
    Writes writes(store->get());
    for (int i = 0; i < 12; ++i) {
      const std::string key = "key" + std::to_string(i);
      values[key] = std::string(i == 11 ? 6000 : 20 * i, static_cast<char>('a' + i));
      if (i % 3 == 0) writes.Put(key, "before", {}, {}, At(kNowMs));
      writes.Put(key, values[key], {.expiry = ExpiresAt(i % 4 == 0 ? 9'000u : 0u)}, {}, At(kNowMs));
      if (i % 5 == 0) writes.Touch(key, ExpiresAt(8'000), {}, At(kNowMs));
    }
    for (int i = 0; stubs && i < 12; i += 2) MakeStub(**store, "key" + std::to_string(i), i);
    writes.Delete("key7", {}, At(kNowMs));
    values.erase("key7");
    std::memcpy(copy.data(), region.bytes().data(), kRegionBytes);
  }

  void MakeStub(Store& store, const std::string& key, int i) {
    const ReadOutcome read = store.Get(key, {}, At(kNowMs));
    const TierPlace place{.position = kTierBlockBytes * (1 + 1000 * static_cast<uint64_t>(i)),
                          .lap = 3,
                          .value_bytes = read.value_bytes,
                          .version = read.version};
    Require(store.stubs()->Make(store.HashOf(key), place), "it cannot become a stub");
    values[key] = *ValueOf(store, key);
  }

  Region region;
  std::vector<std::byte> copy = std::vector<std::byte>(kRegionBytes);
  Values values;
};

// Makes the checksums of headers right, which a fuzzer cannot guess.
void MakeChecksumsRight(std::span<std::byte> region) {
  RecoveryHeader header = LoadRecoveryHeader(region);
  header.checksum = Xxh3(&header, offsetof(RecoveryHeader, checksum), 0);
  std::memcpy(region.data() + kRecoveryOffset, &header, sizeof(header));
  Superblock superblock;
  std::memcpy(&superblock, region.data(), sizeof(superblock));
  superblock.checksum = SuperblockChecksum(superblock);
  std::memcpy(region.data(), &superblock, sizeof(superblock));
}

// Large values do not prove their bytes.
bool Same(const std::string& found, const std::string& was) {
  return was.size() > 4000 ? found.size() == was.size() : found == was;
}

void TakeOver(std::span<const std::byte> bytes, const Image& image, bool stubs) {
  static const Region region;
  if (bytes.empty()) return;
  std::memcpy(region.bytes().data(), image.copy.data(), kRegionBytes);
  struct Edit {
    uint32_t word;
    uint32_t xor_low;
    uint32_t xor_high;
  };
  const auto edits = bytes.subspan(1);
  for (size_t at = 0; at + sizeof(Edit) <= edits.size(); at += sizeof(Edit)) {
    Edit edit;
    std::memcpy(&edit, edits.data() + at, sizeof(edit));
    std::byte* const word =
        region.bytes().data() + edit.word % (kRegionBytes / sizeof(uint64_t)) * sizeof(uint64_t);
    StoreWord(word, LoadWord(word) ^ (uint64_t{edit.xor_high} << 32 | edit.xor_low));
  }
  if ((bytes[0] & std::byte{1}) != std::byte{0}) MakeChecksumsRight(region.bytes());
  auto store = Open(region.bytes(), 0x5555, stubs);
  if (!store.ok()) return Require(!store.status().message().empty(), "an error without a text");
  for (const auto& [key, was] : image.values) {
    const std::optional<std::string> found = ValueOf(**store, key);
    Require(!found || Same(*found, was), "a value that was never there");
  }
  Require(!ValueOf(**store, "key7"), "a key that was deleted");
  // Where a circle goes on is in the tier, whatever the stubs say.
  if (stubs) Require((*store)->stubs()->Laps().size() == kTierOfFile.segments, "another tier");
  // The store works: its heap knows what is free.
  Writes writes(store->get());
  for (const auto& [key, was] : image.values) {
    if (writes.Put(key, "new", {}, {}, At(kNowMs)).outcome.status != ReplyStatus::kOk) continue;
    Require(ValueOf(**store, key) == "new", "a value that was not put");
  }
}

}  // namespace

void MemoryFileBytes(std::span<const std::byte> bytes) {
  static const Image image(/*stubs=*/false);
  TakeOver(bytes, image, /*stubs=*/false);
}

void MemoryFileWithStubsBytes(std::span<const std::byte> bytes) {
  static const Image image(/*stubs=*/true);
  TakeOver(bytes, image, /*stubs=*/true);
}

}  // namespace gannet::fuzz
