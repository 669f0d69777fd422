// A memory file that a process left, with edits: what is taken over must be what was there, or
// less.

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/base/words.h"
#include "server/memory/recovery/recovery_area.h"
#include "server/memory/store/store.h"
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

absl::StatusOr<std::unique_ptr<Store>> Open(std::span<std::byte> region, uint64_t incarnation) {
  static const std::vector<uint64_t> lock_words(64);
  return Store::Create({.region = region,
                        .lock_words = lock_words,
                        .index_slots = 64,
                        .incarnation = incarnation,
                        .hash_seed = 42,
                        .first_version = 1000,
                        .memory_file = true});
}

std::optional<std::string> ValueOf(Store& store, const std::string& key) {
  std::string value(1 << 16, '\0');
  const ReadOutcome read = store.Get(key, std::as_writable_bytes(std::span(value)), At(kNowMs));
  if (read.status != ReplyStatus::kOk) return std::nullopt;
  return value.substr(0, read.value_bytes);
}

// The file, and what is in it. Keys have a state of each kind: new, replaced, touched, deleted,
// with a time to live; the last one is large.
struct Image {
  Image() {
    auto store = Open(region.bytes(), kIncarnation);
    Require(store.ok(), "it cannot be made");
    Writes writes(store->get());
    for (int i = 0; i < 12; ++i) {
      const std::string key = "key" + std::to_string(i);
      values[key] = std::string(i == 11 ? 6000 : 20 * i, static_cast<char>('a' + i));
      if (i % 3 == 0) writes.Put(key, "before", {}, {}, At(kNowMs));
      writes.Put(key, values[key], {.expiry = ExpiresAt(i % 4 == 0 ? 9'000u : 0u)}, {}, At(kNowMs));
      if (i % 5 == 0) writes.Touch(key, ExpiresAt(8'000), {}, At(kNowMs));
    }
    writes.Delete("key7", {}, At(kNowMs));
    values.erase("key7");
    std::memcpy(copy.data(), region.bytes().data(), kRegionBytes);
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

}  // namespace

void MemoryFileBytes(std::span<const std::byte> bytes) {
  static const Image image;
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
  auto store = Open(region.bytes(), 0x5555);
  if (!store.ok()) return Require(!store.status().message().empty(), "an error without a text");
  for (const auto& [key, was] : image.values) {
    const std::optional<std::string> found = ValueOf(**store, key);
    Require(!found || Same(*found, was), "a value that was never there");
  }
  Require(!ValueOf(**store, "key7"), "a key that was deleted");
  // The store works: its heap knows what is free.
  Writes writes(store->get());
  for (const auto& [key, was] : image.values) {
    if (writes.Put(key, "new", {}, {}, At(kNowMs)).outcome.status != ReplyStatus::kOk) continue;
    Require(ValueOf(**store, key) == "new", "a value that was not put");
  }
}

}  // namespace gannet::fuzz
