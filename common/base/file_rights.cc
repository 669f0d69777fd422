#include "common/base/file_rights.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

constexpr uid_t kRoot = 0;

absl::Status Refuse(const std::string& text) { return absl::FailedPreconditionError(text); }

bool Has(const ProcessIds& ids, gid_t group) {
  return std::ranges::find(ids.groups, group) != ids.groups.end();
}

}  // namespace

ProcessIds ProcessIds::Own() {
  ProcessIds ids = {.user = geteuid(), .groups = {getegid()}};
  const int others = getgroups(0, nullptr);
  std::vector<gid_t> groups(static_cast<size_t>(std::max(others, 0)));
  const int got = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(got, 0)));
  ids.groups.insert(ids.groups.end(), groups.begin(), groups.end());
  return ids;
}

absl::Status CheckSecretFile(const std::string& path, const struct stat& about,
                             const ProcessIds& ids) {
  if (!S_ISREG(about.st_mode)) return Refuse(absl::StrCat(path, " is no ordinary file"));
  // Root may read everything, so a file of somebody else is as good for it as that user's own.
  const bool ours = about.st_uid == ids.user || ids.user == kRoot;
  if (!ours && about.st_uid != kRoot) {
    return Refuse(absl::StrCat(path, " has secrets and belongs to user ", about.st_uid,
                               ", who may change them; this process runs as user ", ids.user,
                               ": run chown ", ids.user, " ", path));
  }
  if (ours && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Refuse(absl::StrCat(path, " has secrets, and not only its owner may use it: run ",
                               "chmod 600 ", path));
  }
  if (ours) return absl::OkStatus();
  if ((about.st_mode & (S_IWGRP | S_IXGRP | S_IRWXO)) != 0) {
    return Refuse(absl::StrCat(path, " has secrets, and others than its group may use it, or its ",
                               "group may change it: run chmod 640 ", path));
  }
  if ((about.st_mode & S_IRGRP) == 0 || Has(ids, about.st_gid)) return absl::OkStatus();
  return Refuse(absl::StrCat(path, " has secrets, and group ", about.st_gid, " may read it, which ",
                             "user ", ids.user, " is not in: run chgrp ", ids.groups.front(), " ",
                             path));
}

absl::Status CheckDataDirectory(const std::string& path, const struct stat& about,
                                const ProcessIds& ids) {
  const bool group_writes = (about.st_mode & S_IWGRP) != 0;
  const bool others_write = (about.st_mode & S_IWOTH) != 0;
  if (about.st_uid == ids.user) {
    if (!group_writes && !others_write) return absl::OkStatus();
    return Refuse(absl::StrCat("others may write to the directory ", path, ": chmod go-w ", path));
  }
  const std::string whose = absl::StrCat("the directory ", path, " belongs to user ", about.st_uid,
                                         ", and the server runs as user ", ids.user);
  if (others_write || (group_writes && Has(ids, about.st_gid))) {
    return Refuse(absl::StrCat(
        whose, ", who is one of those who may write to it, as in a volume: ", "give ", path,
        path.ends_with('/') ? "" : "/", "data, which the server makes for itself"));
  }
  return Refuse(absl::StrCat(whose, ": run it as user ", about.st_uid,
                             ", or give it a directory of user ", ids.user));
}

}  // namespace gannet
