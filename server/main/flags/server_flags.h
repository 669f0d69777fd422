#ifndef GANNET_SERVER_MAIN_FLAGS_SERVER_FLAGS_H_
#define GANNET_SERVER_MAIN_FLAGS_SERVER_FLAGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/group_policy.h"
#include "common/program/command_line.h"
#include "common/rdma/address.h"
#include "common/rdma/device.h"
#include "gflags/gflags.h"
#include "server/group/cluster/cluster_place.h"
#include "server/main/control/server.h"

// The flags that kvserver's main looks at itself. The others are in Server::Options.
DECLARE_string(listen);
DECLARE_string(name);
DECLARE_string(auth_file);
DECLARE_string(memory_file);
DECLARE_string(numa);
DECLARE_string(device);
DECLARE_uint32(busy_poll_us);
DECLARE_uint32(silence_ms);
DECLARE_uint32(stop_wait_s);
DECLARE_string(announce);
DECLARE_string(http);
DECLARE_bool(http_show_keys);
DECLARE_string(log_file);
DECLARE_bool(log_json);
DECLARE_string(data);
DECLARE_string(sync);
DECLARE_string(check);
DECLARE_string(upgrade_check);
DECLARE_string(ask_ready);
DECLARE_bool(json);
DECLARE_string(cluster);
DECLARE_string(advertise);

namespace gannet {

// How --help groups the flags.
std::vector<FlagGroup> FlagGroups();
// Puts the flag whose value is to blame before the text of an error.
absl::Status Named(std::string_view flag, std::string_view value, const absl::Status& status);
// Returns what the flags say of the server, but for where it listens. InvalidArgument: the text
// says which flag is wrong.
absl::StatusOr<Server::Options> OptionsFromFlags();
// Makes the flags what members of the group do alike, and fills in again what they say of the
// server. Says in the log where somebody has given a flag that does not count, or that counts for
// this member alone. Errors as above: what the group has does not go with the other flags.
absl::Status TakePolicy(const GroupPolicy& policy, const std::string& group,
                        Server::Options* options);
// Returns what the flags say now of what members do alike.
GroupPolicy PolicyOfFlags();
// Returns where a server on such a device listens: one address, or one for each of its rails. The
// errors are those of ResolveListen. InvalidArgument: too many, one twice, or one of all devices
// among several.
absl::StatusOr<std::vector<SocketAddress>> ListenAddresses(DeviceKind kind);
// Returns what the flags say of the server's cluster. No flag says its version.
ClusterFlags FlagsOfCluster();

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_FLAGS_SERVER_FLAGS_H_
