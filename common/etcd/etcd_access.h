#ifndef GANNET_COMMON_ETCD_ETCD_ACCESS_H_
#define GANNET_COMMON_ETCD_ETCD_ACCESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/etcd/etcd_client.h"

namespace gannet {

// How a program gets access to etcd, as its flags say it; each field is the flag of its name, with
// etcd_ before it.
struct EtcdAccess {
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string user;
  std::string password_file;
};

// Returns InvalidArgument if flags are missing that others need.
absl::Status Check(const EtcdAccess& access);
// Reads the password, and returns the options of a client without its endpoints. REQUIRES: Check
// returned OK. FailedPrecondition: the file cannot be read, has no password, or others may read it.
absl::StatusOr<EtcdClient::Options> ClientOptions(const EtcdAccess& access);

}  // namespace gannet

#endif  // GANNET_COMMON_ETCD_ETCD_ACCESS_H_
