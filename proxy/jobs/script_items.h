#ifndef GANNET_PROXY_JOBS_SCRIPT_ITEMS_H_
#define GANNET_PROXY_JOBS_SCRIPT_ITEMS_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/jobs/job.h"

namespace gannet::proxy {

// Items that were READ, and what commands would make of them. Commands run against it as they do
// against the store, by their stages, but nobody else sees their writes. Afterwards each changed
// item is one write, which happens only if the store's item still has the version that was READ.
//
// Time stands still in it.
class ScriptItems {
 public:
  // The values of all items. With more, a write finds no room.
  static constexpr size_t kValueBytesMax = 64 << 20;

  void Clear();
  // Takes the answer to a Get with a value.
  void Take(Operation& got);
  // Runs a command. Returns false if it asked for an item that is not here: then it has no reply,
  // and missing() names the item. REQUIRES: the command uses only its keys.
  bool Run(Job& job);
  const std::vector<std::string>& missing() const { return missing_; }

  // The bytes of values beyond those that were READ.
  size_t made_bytes() const { return value_bytes_ - std::min(value_bytes_, read_bytes_); }
  size_t size() const { return items_.size(); }
  bool has_changed() const;
  // Begins a Get of the version of each item that has not changed. Returns whether there is any.
  bool BeginChecks(Job& job) const;
  // Returns whether the store's item has the version that was READ.
  bool IsUnchanged(const Operation& checked) const;
  // Begins a write for each item that has changed. The values are its own.
  void BeginWrites(Job& job) const;
  // Begins to undo those writes that were applied, each if nobody has changed the item since.
  // Returns whether there is any. REQUIRES: the job's answers are those of BeginWrites.
  bool BeginUndo(Job& job) const;

 private:
  struct Content {
    uint32_t flags = 0;
    std::chrono::milliseconds ttl_left{0};  // 0: it never expires
    std::string value;
  };
  struct Item {
    uint64_t read_version = 0;  // 0: there was none
    uint64_t version = 0;       // 0: there is none
    bool is_written = false;    // not only its time to live
    Content now;
    Content was;  // its value only if it is written

    bool has_changed() const { return version != read_version && (version | read_version) != 0; }
  };

  void Answer(Operation& operation, Item& item);
  void Put(Operation& put, Item& item);
  void Extend(Operation& operation, Item& item);
  void Count(Operation& incr, Item& item);
  // Sets a value that was made, unless there is no room for it.
  void SetValue(Operation& operation, Item& item, std::string value);
  void Touch(Item& item, std::chrono::milliseconds ttl);
  void Remove(Item& item);
  // Keeps the value that was READ. Call it before the value changes.
  void KeepValue(Item& item);

  std::map<std::string, Item, std::less<>> items_;
  std::vector<std::string> missing_;
  size_t value_bytes_ = 0;  // of all values that it has
  size_t read_bytes_ = 0;
  uint64_t next_version_ = kFirstVersion;
  // The store's own versions are smaller.
  static constexpr uint64_t kFirstVersion = uint64_t{1} << 63;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_SCRIPT_ITEMS_H_
