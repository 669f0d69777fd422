// The cache of an inference server for blocks of attention keys and values. A block is one item,
// and its pieces, one for each layer, lie scattered as the attention kernel wants them. They go to
// the server and come back without a copy. Blocks are named by what was said until their end, so
// that requests with the same beginning share them.
//
//   softverbs-run ./kv_block_cache 127.0.0.1:7471     (or without softverbs-run, on an RDMA NIC)
//
// With a GPU, Client::RegisterDmabuf takes the place of AllocateMemory.

#include <gannet/client.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr size_t kLayers = 16;
constexpr size_t kPieceBytes = 8192;
constexpr size_t kBlocks = 4;
constexpr size_t kBlockTokens = 8;  // words of a prompt that a block is for

class KvBlockCache {
 public:
  static absl::StatusOr<KvBlockCache> Make(gannet::Client& client) {
    absl::StatusOr<gannet::RegisteredMemory> memory =
        client.AllocateMemory(kLayers * kBlocks * kPieceBytes);
    if (!memory.ok()) return memory.status();
    return KvBlockCache(client, *std::move(memory));
  }

  // Where a layer's piece of a block lies: all blocks of a layer are together.
  std::byte* Piece(size_t layer, size_t block) const { return memory_->data() + At(layer, block); }

  // Returns false if nobody has stored the block.
  absl::StatusOr<bool> Load(const std::string& name, size_t block) {
    const auto found = client_.GetInto(name, PiecesOf(block));
    if (!found.ok()) return found.status();
    return found->has_value() && (*found)->value_bytes == kLayers * kPieceBytes;
  }
  absl::Status Store(const std::string& name, size_t block) {
    return client_.PutFrom(name, PiecesOf(block)).status();
  }

 private:
  KvBlockCache(gannet::Client& client, gannet::RegisteredMemory memory)
      : client_(client), memory_(std::make_unique<gannet::RegisteredMemory>(std::move(memory))) {}

  static size_t At(size_t layer, size_t block) { return (layer * kBlocks + block) * kPieceBytes; }
  std::vector<gannet::RegisteredSpan> PiecesOf(size_t block) const {
    std::vector<gannet::RegisteredSpan> pieces;
    for (size_t layer = 0; layer < kLayers; ++layer) {
      pieces.emplace_back(*memory_, At(layer, block), kPieceBytes);
    }
    return pieces;
  }

  gannet::Client& client_;
  std::unique_ptr<gannet::RegisteredMemory> memory_;  // spans refer to it, so it must not move
};

// Stands for the model: what a layer computes for the words until the end of a block.
std::byte Computed(const std::string& words, size_t layer) {
  return static_cast<std::byte>(std::hash<std::string>()(words) + layer);
}

// Brings all blocks of a prompt into the memory, from the store where it has them.
absl::Status Prepare(KvBlockCache& cache, const std::vector<std::string>& words) {
  std::string said;
  for (size_t block = 0; (block + 1) * kBlockTokens <= words.size() && block < kBlocks; ++block) {
    for (size_t i = 0; i < kBlockTokens; ++i) said += words[block * kBlockTokens + i] + " ";
    const std::string name = "kv:" + std::to_string(std::hash<std::string>()(said));
    const absl::StatusOr<bool> found = cache.Load(name, block);
    if (!found.ok()) return found.status();
    for (size_t layer = 0; layer < kLayers; ++layer) {
      std::byte* const piece = cache.Piece(layer, block);
      if (!*found) std::memset(piece, static_cast<int>(Computed(said, layer)), kPieceBytes);
      if (piece[kPieceBytes - 1] != Computed(said, layer)) return absl::DataLossError("a piece");
    }
    if (!*found) {
      if (absl::Status stored = cache.Store(name, block); !stored.ok()) return stored;
    }
    std::cout << "block " << block << ": " << (*found ? "found" : "computed") << "\n";
  }
  return absl::OkStatus();
}

absl::Status Run(const std::string& server) {
  absl::StatusOr<std::unique_ptr<gannet::Client>> client = gannet::Client::Connect({server});
  if (!client.ok()) return client.status();
  absl::StatusOr<KvBlockCache> cache = KvBlockCache::Make(**client);
  if (!cache.ok()) return cache.status();
  std::vector<std::string> prompt(2 * kBlockTokens, "word");
  if (absl::Status first = Prepare(*cache, prompt); !first.ok()) return first;
  // Another request, with the same beginning.
  prompt.back() = "question";
  return Prepare(*cache, prompt);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: kv_block_cache HOST:PORT\n";
    return 2;
  }
  const absl::Status status = Run(argv[1]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
