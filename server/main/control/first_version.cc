#include "server/main/control/first_version.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/layout/version.h"

namespace gannet {

absl::StatusOr<uint64_t> FirstVersionByClock(WallTime wall) {
  const std::optional<uint64_t> version = FirstVersionAt(wall.ns());
  if (version) return *version;
  const std::string now = absl::FormatTime(absl::FromUnixNanos(wall.ns()), absl::UTCTimeZone());
  return absl::FailedPreconditionError(
      absl::StrCat("the system's clock says ", now,
                   ": set it (timedatectl set-ntp true); the versions of items begin where it is, "
                   "and those of an earlier run would come again"));
}

}  // namespace gannet
