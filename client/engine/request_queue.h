#ifndef GANNET_CLIENT_ENGINE_REQUEST_QUEUE_H_
#define GANNET_CLIENT_ENGINE_REQUEST_QUEUE_H_

#include <cstdint>
#include <vector>

#include "client/session/request_window.h"
#include "common/base/check.h"
#include "common/base/data_path_checks.h"

namespace gannet {

// The operations whose requests wait to be sent to one server. First in, first out. Any operation
// can leave at any time, since one that ends at its deadline waits for nothing. Each operation is
// in the queue at most once, so the queue never overflows. Allocates only when it is made. One
// owner thread.
class RequestQueue {
 public:
  // Operations are numbered from 0 to `ops` - 1.
  explicit RequestQueue(uint32_t ops) : end_(ops), entries_(ops + 1) {
    entries_[end_] = {end_, end_};
  }

  uint32_t capacity() const { return end_; }
  bool empty() const { return size_ == 0; }
  uint32_t size() const { return size_; }
  bool Contains(uint32_t op) const { return entries_[op].next != kInvalidOp; }
  // REQUIRES: not empty.
  uint32_t front() const {
    GANNET_CHECK_DATA_PATH(!empty(), "no request is queued");
    return entries_[end_].next;
  }

  void Push(uint32_t op) {
    GANNET_CHECK(!Contains(op), "a request is queued twice");
    const uint32_t last = entries_[end_].previous;
    entries_[op] = {last, end_};
    entries_[last].next = op;
    entries_[end_].previous = op;
    ++size_;
  }
  void Remove(uint32_t op) {
    GANNET_CHECK(Contains(op), "no request of this operation is queued");
    const Entry entry = entries_[op];
    entries_[entry.previous].next = entry.next;
    entries_[entry.next].previous = entry.previous;
    entries_[op] = {};
    --size_;
  }

 private:
  struct Entry {
    uint32_t previous = kInvalidOp;
    uint32_t next = kInvalidOp;  // kInvalidOp: the operation is not in the queue
  };

  uint32_t end_;  // the entry that closes the ring: before the first, after the last
  uint32_t size_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_REQUEST_QUEUE_H_
