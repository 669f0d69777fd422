#ifndef GANNET_PROXY_JOBS_TRANSACTION_H_
#define GANNET_PROXY_JOBS_TRANSACTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/jobs/memory_limit.h"

namespace gannet::proxy {

struct Operation;

// The versions that WATCH saw, and what became of them.
class Watches {
 public:
  // More keys are refused, so that EXEC checks them with few READs.
  static constexpr size_t kMax = 1024;

  struct Watch {
    std::string key;
    uint64_t version = 0;  // 0: there was no item
    bool read = false;     // the version is known
    bool written = false;  // the transaction wrote it, so others' writes no longer matter
  };

  std::vector<Watch>& all() { return all_; }
  Watch* Find(std::string_view key);
  // Returns how many bytes all of them take.
  size_t Add(std::span<const std::string_view> keys);

 private:
  std::vector<Watch> all_;
};

// What a connection has watched, and what it has queued since its MULTI.
struct Transaction {
  static constexpr size_t kCommandsMax = 65'536;

  bool open = false;     // MULTI came, and neither EXEC nor DISCARD
  bool refused = false;  // a command was not queued: EXEC will refuse all
  std::vector<std::string> commands;
  size_t bytes = 0;  // of them
  Charge charge;     // for them
  Charge watched;    // for `watches`
  // Shared with the jobs of WATCH, which fill it in.
  std::shared_ptr<Watches> watches;
};

// Makes the writes of a transaction conditional, and looks at how they end. A command of a
// transaction writes a key once in each stage, and by no kGetAndTouch, which has no condition.
class TransactionGuard {
 public:
  explicit TransactionGuard(std::shared_ptr<Watches> watches) : watches_(std::move(watches)) {}

  // Makes a write of a watched key conditional on the version that was watched.
  void BeforeStart(Operation& operation);
  void OnAnswer(const Operation& operation);

  Watches* watches() const { return watches_.get(); }
  bool conflict() const { return conflict_; }  // a write found that others had written its key
  bool applied() const { return applied_; }    // a write was applied

 private:
  void OnFlush(bool is_done);

  const std::shared_ptr<Watches> watches_;  // nullptr: none
  bool conflict_ = false;
  bool applied_ = false;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_TRANSACTION_H_
