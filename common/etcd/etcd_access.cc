#include "common/etcd/etcd_access.h"

#include <sys/stat.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/file_rights.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

// Returns the first line of a file that nobody else may read.
absl::StatusOr<std::string> ReadPassword(const std::string& path) {
  std::ifstream file(path);
  struct stat status {};
  if (!file || stat(path.c_str(), &status) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot read etcd's password in ", path));
  }
  GANNET_RETURN_IF_ERROR(CheckSecretFile(path, status, ProcessIds::Own()));
  std::string password;
  std::getline(file, password);
  if (!password.empty()) return password;
  return absl::FailedPreconditionError(absl::StrCat(path, " has no password in its first line"));
}

}  // namespace

absl::Status Check(const EtcdAccess& access) {
  if (access.cert_file.empty() != access.key_file.empty()) {
    return absl::InvalidArgumentError(
        "--etcd_cert_file and --etcd_key_file go together: a certificate and its key");
  }
  if (access.user.empty() != access.password_file.empty()) {
    return absl::InvalidArgumentError("--etcd_user and --etcd_password_file go together");
  }
  return absl::OkStatus();
}

absl::StatusOr<EtcdClient::Options> ClientOptions(const EtcdAccess& access) {
  GANNET_CHECK(Check(access).ok(), "flags of etcd that do not go together");
  EtcdClient::Options options = {.ca_file = access.ca_file,
                                 .cert_file = access.cert_file,
                                 .key_file = access.key_file,
                                 .user = access.user};
  if (!access.user.empty()) {
    GANNET_ASSIGN_OR_RETURN(options.password, ReadPassword(access.password_file));
  }
  return options;
}

}  // namespace gannet
