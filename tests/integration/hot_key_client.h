#ifndef GANNET_TESTS_INTEGRATION_HOT_KEY_CLIENT_H_
#define GANNET_TESTS_INTEGRATION_HOT_KEY_CLIENT_H_

#include <gannet/client.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/linearizability/linearizability.h"

namespace gannet {

// Values of at least this length name the write that they are from.
inline constexpr size_t kIdBytes = 8;

// The key of a number that all clients count up.
inline constexpr char kCounter[] = "counter";

struct HotKeyOptions {
  int operations = 0;  // of each client
  size_t value_bytes_min = 0;
  bool hasty = false;  // deadlines so short that the outcome of some writes is unknown
  uint32_t clients = 6;
  // Others insert keys into a small index that grows, instead of moving keys in a full one.
  bool index_grows = false;
  // The server evicts, and its memory is too small for the hot keys and for those of others. There
  // are many hot keys, and only some of them are hot at a time. Nobody counts.
  bool evicts = false;
  // If not null: clients work until it is set, however many operations that takes.
  const std::atomic<bool>* until = nullptr;
  // Of the server, behind those that the run chooses.
  std::vector<std::string> server_flags = {};
  // With `evicts`: a directory for what is evicted; empty: that is gone.
  std::string tier = {};
};

std::vector<std::string> HotKeys(const HotKeyOptions& options);

// What one client did with one key, and how it is passed to the checker.
struct Seen {
  linearizability::Operation operation;
  uint64_t version = 0;  // that the server named, of what was written or read; 0 = none
  size_t value_bytes = 0;
};
using SeenByKey = std::map<std::string, std::vector<Seen>>;

// One client of a HotKeyRun. Does random operations on the hot keys, and keeps what it saw.
class HotKeyClient {
 public:
  struct Options : HotKeyOptions {
    std::string endpoint;
    uint32_t number = 0;
    uint64_t seed = 0;
    // Counts what all clients did, and what they logged (the loss of a connection, its return).
    std::atomic<uint64_t>* steps = nullptr;
    std::atomic<uint64_t>* lines = nullptr;
  };

  explicit HotKeyClient(const Options& options)
      : options_(options), random_(options.seed + options.number) {}

  // Connects, and does all its operations.
  void Run();

  const Options& options() const { return options_; }
  const SeenByKey& seen() const { return seen_; }
  // Increments of the counter that were answered, and others that may have happened.
  int64_t counted() const { return counted_; }
  int64_t uncertain() const { return uncertain_; }

 private:
  struct Known {
    uint64_t version = 0;
    uint64_t id = linearizability::kAbsent;
  };

  bool GoesOn(int done) const;
  void Step();
  const std::string& ChooseKey();
  size_t ChooseSize(const std::string& key);
  std::optional<std::chrono::milliseconds> Deadline();
  linearizability::Operation Begin(linearizability::Kind kind) const;
  void Get(const std::string& key);
  absl::StatusOr<std::optional<Value>> GetSomehow(const std::string& key);
  void Count();
  void Put(const std::string& key, linearizability::Kind kind);
  void Delete(const std::string& key);
  // Returns whether a write with this status may have been applied.
  bool MayHaveHappened(const absl::Status& status) const;
  void ExpectHasty(const absl::Status& status) const;
  void Record(const std::string& key, const Seen& seen) { seen_[key].push_back(seen); }

  const Options options_;
  const std::vector<std::string> keys_ = HotKeys(options_);
  std::mt19937_64 random_;
  std::unique_ptr<Client> client_;
  RegisteredMemory memory_;
  uint32_t writes_ = 0;
  int64_t counted_ = 0;
  int64_t uncertain_ = 0;
  int64_t last_number_ = 0;
  std::map<std::string, Known> known_;
  SeenByKey seen_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_INTEGRATION_HOT_KEY_CLIENT_H_
