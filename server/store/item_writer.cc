#include "server/store/item_writer.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "common/base/words.h"

namespace gannet {
namespace {
constexpr size_t kCommitBytes = sizeof(ItemHeader::commit);
}  // namespace

SmallItem::SmallItem(const ItemHeader& header, std::string_view key, std::string_view value)
    : bytes_(ItemBytes(key.size(), value.size())) {
  std::memcpy(copy_, &header, sizeof(header));
  std::memcpy(copy_ + sizeof(header), key.data(), key.size());
  std::copy_n(reinterpret_cast<const std::byte*>(value.data()), value.size(),
              copy_ + sizeof(header) + key.size());
}

uint64_t SmallItem::LiveCommit(uint64_t incarnation, uint64_t offset) const {
  return LiveCommitWord(std::span(copy_).first(bytes_).subspan(kCommitBytes), incarnation, offset);
}

void SmallItem::StoreContent(std::byte* block) const {
  StoreWords(block + kCommitBytes, copy_ + kCommitBytes, bytes_ - kCommitBytes);
}

void StoreDead(std::byte* block) { StoreWordRelease(block, 0); }

void StoreLive(std::byte* block, uint64_t live_commit) { StoreWordRelease(block, live_commit); }

void StoreKey(std::byte* block, std::string_view key) {
  StoreWords(block + sizeof(ItemHeader), key.data(), key.size());
}

void StoreHeader(std::byte* block, const ItemHeader& header) {
  std::byte copy[sizeof(header)];
  std::memcpy(copy, &header, sizeof(header));
  StoreWords(block + kCommitBytes, copy + kCommitBytes, sizeof(copy) - kCommitBytes);
}

void StoreValue(std::byte* block, size_t key_bytes, std::string_view value) {
  std::byte* at = block + sizeof(ItemHeader) + key_bytes;
  const size_t in_word = key_bytes % 8;
  if (in_word != 0) {  // the word that the key's last bytes are in
    const size_t n = std::min(value.size(), 8 - in_word);
    uint64_t word = LoadWord(at - in_word);
    std::memcpy(reinterpret_cast<std::byte*>(&word) + in_word, value.data(), n);
    StoreWord(at - in_word, word);
    at += n;
    value.remove_prefix(n);
  }
  if (!value.empty()) StoreWords(at, value.data(), value.size());
}

uint64_t LiveCommitOf(const std::byte* block, size_t item_bytes, uint64_t incarnation,
                      uint64_t offset) {
  return LiveCommitWord(std::span(block, item_bytes).subspan(kCommitBytes), incarnation, offset);
}

}  // namespace gannet
