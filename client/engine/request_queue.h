#ifndef GANNET_CLIENT_ENGINE_REQUEST_QUEUE_H_
#define GANNET_CLIENT_ENGINE_REQUEST_QUEUE_H_

#include <cstdint>
#include <vector>

#include "client/session/request_window.h"
#include "common/base/check.h"
#include "common/base/data_path_checks.h"

namespace gannet {

// The operations whose requests wait to be sent to one server, in two lines, each of which is first
// in, first out. Any operation can leave at any time, since one that ends at its deadline waits for
// nothing. Each operation is in one line and once, so the queue never overflows. Allocates only
// when it is made. One owner thread.
class RequestQueue {
 public:
  // GETs may have to wait for others that are long on their way, from a disk. So they keep nothing
  // else waiting.
  enum class Line : uint8_t { kGets, kOthers };

  // Operations are numbered from 0 to `ops` - 1.
  explicit RequestQueue(uint32_t ops) : ops_(ops), entries_(ops + 2) {
    for (const Line line : {Line::kGets, Line::kOthers}) {
      entries_[EndOf(line)] = {EndOf(line), EndOf(line)};
    }
  }

  uint32_t capacity() const { return ops_; }
  bool empty() const { return size_ == 0; }
  bool empty(Line line) const { return entries_[EndOf(line)].next == EndOf(line); }
  uint32_t size() const { return size_; }
  bool Contains(uint32_t op) const { return entries_[op].next != kInvalidOp; }
  // These: REQUIRES: not empty.
  uint32_t front(Line line) const {
    GANNET_CHECK_DATA_PATH(!empty(line), "no request is queued");
    return entries_[EndOf(line)].next;
  }
  uint32_t back(Line line) const {
    GANNET_CHECK_DATA_PATH(!empty(line), "no request is queued");
    return entries_[EndOf(line)].previous;
  }

  void Push(uint32_t op, Line line) {
    GANNET_CHECK(!Contains(op), "a request is queued twice");
    const uint32_t end = EndOf(line);
    const uint32_t last = entries_[end].previous;
    entries_[op] = {last, end};
    entries_[last].next = op;
    entries_[end].previous = op;
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

  // The entry that closes a line's ring: before the first, after the last.
  uint32_t EndOf(Line line) const { return ops_ + static_cast<uint32_t>(line); }

  uint32_t ops_;
  uint32_t size_ = 0;  // of both lines
  std::vector<Entry> entries_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_REQUEST_QUEUE_H_
