#ifndef GANNET_CLIENT_API_CONNECT_ENGINE_H_
#define GANNET_CLIENT_API_CONNECT_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/engine/engine.h"

namespace gannet {

// Makes an Engine and waits until it can start (ServerSet::StartStatus), at most for
// Options::connect_timeout. If the server is a group of a cluster of several groups, the engine has
// all of them: it asks for the cluster's map. In any case it knows all members of a group, also if
// only one was listed. InvalidArgument: such a group is one of several
// endpoints. Other errors are those of Engine::Create and ServerSet::StartStatus.
absl::StatusOr<std::unique_ptr<Engine>> ConnectEngine(Engine::Settings settings);

}  // namespace gannet

#endif  // GANNET_CLIENT_API_CONNECT_ENGINE_H_
