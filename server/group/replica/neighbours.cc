#include "server/group/replica/neighbours.h"

#include "absl/strings/str_cat.h"
#include "common/protocol/versions.h"

namespace gannet {

namespace {

template <class Hello>
std::string WhyNot(const Hello& hello, bool reads, uint32_t layout_version,
                   uint16_t stream_version) {
  const VersionRange theirs = {hello.stream_version_min, hello.stream_version_max};
  if (!theirs.Has(stream_version)) {
    return absl::StrCat("it speaks versions ", theirs.min, " to ", theirs.max,
                        " of the stream, the group ", stream_version,
                        ": use the group's release or the next one");
  }
  if (reads && hello.layout_version < layout_version) {
    return absl::StrCat("it knows layouts up to version ", hello.layout_version,
                        ", the primary's is ", layout_version, ": use the primary's release");
  }
  return "";
}

}  // namespace

std::string WhyVersionsDoNotFit(const ReplicaHello& hello, uint32_t layout_version,
                                uint16_t stream_version) {
  return WhyNot(hello, hello.history == 0, layout_version, stream_version);
}

std::string WhyVersionsDoNotFit(const ReceiverHello& hello, uint32_t layout_version,
                                uint16_t stream_version) {
  return WhyNot(hello, true, layout_version, stream_version);
}

VersionRange SpokenVersions::Say() const {
  if (stream_) return {kStreamVersions.min, *stream_};
  if (only_first_) return {0, 0};
  return kStreamVersions;
}

}  // namespace gannet
