#ifndef GANNET_SERVER_GROUP_REPLICA_PUBLISHED_LSN_H_
#define GANNET_SERVER_GROUP_REPLICA_PUBLISHED_LSN_H_

#include <cstdint>

namespace gannet {

// What a primary tells a joiner instead of what is committed: up to where all records are in its
// store. A joiner walks through the store once it hears that all before its stream's begin is
// there. Workers publish a moment after a record is committed. A record that is committed and not
// published yet would be in neither the walk nor the stream.
//
//   published.Advance(committed, [&] { return writes.PublishAllOfIt(); });
//   beacon.committed = published.ToldTo(in_sync, committed);
//
// Thread safety: one thread.
class PublishedLsn {
 public:
  // Publishes all that ends at `committed` or before. `publish` returns false if not all of that
  // may be published yet: it waits for a disk. More may be committed and not published meanwhile.
  template <class Publish>
  void Advance(uint64_t committed, const Publish& publish) {
    if (!publish()) return;
    published_ = committed;
  }
  uint64_t ToldTo(bool in_sync, uint64_t committed) const {
    return in_sync ? committed : published_;
  }

 private:
  uint64_t published_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_PUBLISHED_LSN_H_
