// A feature store: the features of many users land as the rows of one matrix, all at once, ready
// for a model. Users that are not known get a row of zeros.
//
//   softverbs-run ./feature_store 127.0.0.1:7471     (or without softverbs-run, on an RDMA NIC)

#include <gannet/client.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr size_t kFeatures = 256;
constexpr size_t kRowBytes = kFeatures * sizeof(float);

// A matrix in memory that the network card writes to.
class Batch {
 public:
  static absl::StatusOr<Batch> Make(gannet::Client& client, size_t rows) {
    absl::StatusOr<gannet::RegisteredMemory> memory = client.AllocateMemory(rows * kRowBytes);
    if (!memory.ok()) return memory.status();
    return Batch(*std::move(memory));
  }

  std::span<float> row(size_t i) {
    return {reinterpret_cast<float*>(memory_->data()) + i * kFeatures, kFeatures};
  }

  // Fills a row for each user. Returns how many users are known.
  absl::StatusOr<size_t> Fill(gannet::Client& client, std::span<const std::string> users) {
    std::vector<gannet::RegisteredSpan> rows;
    for (size_t i = 0; i < users.size(); ++i) rows.emplace_back(*memory_, i * kRowBytes, kRowBytes);
    std::vector<gannet::GetTarget> targets;
    for (size_t i = 0; i < users.size(); ++i) {
      targets.push_back({.key = users[i], .into = {&rows[i], 1}});
    }
    const auto found = client.MultiGetInto(targets);
    size_t known = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i].ok()) return found[i].status();
      const bool whole = found[i]->has_value() && (*found[i])->value_bytes == kRowBytes;
      known += whole ? 1 : 0;
      if (!whole) std::ranges::fill(row(i), 0.0f);  // what a miss leaves there is unspecified
    }
    return known;
  }

 private:
  explicit Batch(gannet::RegisteredMemory memory)
      : memory_(std::make_unique<gannet::RegisteredMemory>(std::move(memory))) {}

  std::unique_ptr<gannet::RegisteredMemory> memory_;  // spans refer to it, so it must not move
};

// What computes features: puts those of many users with one post.
absl::Status Publish(gannet::Client& client, std::span<const std::string> users) {
  std::vector<std::vector<float>> features;
  std::vector<gannet::Client::KeyValue> items;
  for (size_t i = 0; i < users.size(); ++i) {
    features.emplace_back(kFeatures, 0.5f + static_cast<float>(i));
    items.push_back(
        {.key = users[i], .value = {reinterpret_cast<const char*>(features[i].data()), kRowBytes}});
  }
  for (const auto& put : client.MultiPut(items)) {
    if (!put.ok()) return put.status();
  }
  return absl::OkStatus();
}

absl::Status Run(const std::string& server) {
  absl::StatusOr<std::unique_ptr<gannet::Client>> client = gannet::Client::Connect({server});
  if (!client.ok()) return client.status();
  std::vector<std::string> users;
  for (int i = 0; i < 100; ++i) users.push_back("features:user" + std::to_string(i));
  if (absl::Status put = Publish(**client, std::span(users).first(99)); !put.ok()) return put;

  absl::StatusOr<Batch> batch = Batch::Make(**client, users.size());
  if (!batch.ok()) return batch.status();
  const absl::StatusOr<size_t> known = batch->Fill(**client, users);
  if (!known.ok()) return known.status();
  std::cout << *known << " of " << users.size() << " users are known\n";
  std::cout << "user7 has " << batch->row(7)[0] << ", user99 has " << batch->row(99)[0] << "\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: feature_store HOST:PORT\n";
    return 2;
  }
  const absl::Status status = Run(argv[1]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
