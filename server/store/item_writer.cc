#include "server/store/item_writer.h"

#include <algorithm>
#include <cstring>

namespace gannet {

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

}  // namespace gannet
