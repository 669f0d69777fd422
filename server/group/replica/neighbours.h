#ifndef GANNET_SERVER_GROUP_REPLICA_NEIGHBOURS_H_
#define GANNET_SERVER_GROUP_REPLICA_NEIGHBOURS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/protocol/replica.h"
#include "common/protocol/versions.h"

namespace gannet {

// Returns why a member of another version cannot follow a primary whose region has this layout, and
// whose stream has this version; "" if it can. A joiner READs the primary's region, so it has to
// know its layout. It finds out by the grant if the primary's is too old. One that is in sync
// already READs nothing.
std::string WhyVersionsDoNotFit(const ReplicaHello& hello, uint32_t layout_version,
                                uint16_t stream_version);
// The same of a receiver, which READs as a joiner does.
std::string WhyVersionsDoNotFit(const ReceiverHello& hello, uint32_t layout_version,
                                uint16_t stream_version);

// Which versions of the stream a member says in its hello. Release 0.1.0 speaks version 0 only, and
// closes the link if the hello has any other number there, without a word. So a joiner whose link
// is closed in this way says 0 next time, and then all again, in case it was closed for another
// reason: the network may have been cut. A primary that answers, if only to refuse it, is none of
// those that close the link.
class SpokenVersions {
 public:
  // The member follows a stream that has this version now. It says no newer one from then on: the
  // next primary may be of the release before, and cannot wait for a second link. A new primary
  // begins with the oldest version.
  void OnStream(uint16_t version) { stream_ = version; }
  void OnClosedWithoutAnswer() { only_first_ = !only_first_; }
  void OnRefused() { only_first_ = false; }
  VersionRange Say() const;

 private:
  std::optional<uint16_t> stream_;
  bool only_first_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_NEIGHBOURS_H_
