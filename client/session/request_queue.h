#ifndef GANNET_CLIENT_SESSION_REQUEST_QUEUE_H_
#define GANNET_CLIENT_SESSION_REQUEST_QUEUE_H_

#include <cstdint>
#include <vector>

#include "client/session/request_window.h"
#include "common/base/check.h"

namespace gannet {

// The operations whose requests wait to be sent. First in, first out; but any of them can leave at
// any time, since an operation that ends at its deadline waits for nothing. Each is in it at most
// once, so that it never holds more than there are. Allocated once. One owner thread.
class RequestQueue {
 public:
  // Operations are numbered from 0 to `ops` - 1.
  explicit RequestQueue(uint32_t ops) : end_(ops), links_(ops + 1) { links_[end_] = {end_, end_}; }

  bool empty() const { return links_[end_].next == end_; }
  bool Contains(uint32_t op) const { return links_[op].next != kNoOp; }
  // REQUIRES: not empty.
  uint32_t front() const { return links_[end_].next; }

  void Push(uint32_t op) {
    GANNET_CHECK(!Contains(op), "a request is queued twice");
    const uint32_t last = links_[end_].previous;
    links_[op] = {last, end_};
    links_[last].next = op;
    links_[end_].previous = op;
  }
  void Remove(uint32_t op) {
    GANNET_CHECK(Contains(op), "no request of this operation is queued");
    const Link link = links_[op];
    links_[link.previous].next = link.next;
    links_[link.next].previous = link.previous;
    links_[op] = {};
  }

 private:
  struct Link {
    uint32_t previous = kNoOp;
    uint32_t next = kNoOp;  // kNoOp: not in the queue
  };

  uint32_t end_;  // the number of the link that closes the ring: before the first, after the last
  std::vector<Link> links_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_REQUEST_QUEUE_H_
