#include "server/group/members/link_dialer.h"

#include <optional>
#include <utility>

namespace gannet {

LinkDialer::LinkDialer(const GroupContext& context, AuthFile* keys)
    : context_(context),
      keys_(keys),
      address_([](const std::string& endpoint) { return ResolveAll(endpoint, kDefaultPort); }) {}

absl::StatusOr<std::unique_ptr<BackupLink>> LinkDialer::Dial(const Call& call) {
  const std::optional<SocketAddress> to = address_.Find(call.endpoint);
  if (!to) return nullptr;
  return BackupLink::Start({.device = context_.device,
                            .to = *to,
                            .endpoint = call.endpoint,
                            .key = ReplicaKeyOf(keys_),
                            .token = call.token,
                            .ring_bytes = call.ring_bytes,
                            .wall = context_.clocks.wall,
                            .deadline = call.deadline});
}

absl::StatusOr<std::unique_ptr<Joiner>> LinkDialer::BeginWalk(const BackupLink& link,
                                                              Joiner::Options options) const {
  options.device = context_.device;
  options.primary = link.to();
  options.keys = keys_;
  options.idle = context_.idle;
  return Joiner::Begin(std::move(options));
}

}  // namespace gannet
