#include "server/group/members/link_dialer.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace gannet {

LinkDialer::LinkDialer(const GroupContext& context, AuthFile* keys)
    : context_(context),
      keys_(keys),
      address_([](const std::string& endpoint) { return ResolveAll(endpoint, kDefaultPort); }) {}

absl::StatusOr<std::unique_ptr<BackupLink>> LinkDialer::Dial(const Call& call) {
  const std::optional<SocketAddress> to = address_.Find(call.endpoint);
  if (!to) return nullptr;
  return BackupLink::Start({.devices = Devices(),
                            .to = *to,
                            .endpoint = call.endpoint,
                            .key = ReplicaKeyOf(keys_),
                            .token = call.token,
                            .ring_bytes = call.ring_bytes,
                            .wall = context_.clocks.wall,
                            .deadline = call.deadline});
}

std::vector<Device> LinkDialer::Devices() const {
  std::vector<Device> devices;
  for (const LinkRail& rail : context_.rails) {
    if (std::ranges::find(devices, rail.device.verbs, &Device::verbs) == devices.end()) {
      devices.push_back(rail.device);
    }
  }
  return devices;
}

// Nobody knows which device reaches an address before it is tried. One that does not is soon left.
absl::StatusOr<std::unique_ptr<Joiner>> LinkDialer::BeginWalk(const BackupLink& link,
                                                              std::span<const std::string> rails,
                                                              Joiner::Options options) const {
  std::tie(options.primary, options.device) = link.way();
  for (const std::string& rail : rails) {
    const std::optional<SocketAddress> address = NumericAddress(rail, kDefaultPort);
    if (!address || address->NetworkBytes() == options.primary.NetworkBytes()) continue;
    for (const Device& device : Devices()) {
      options.other_ways.push_back({.server = *address, .device = device});
    }
  }
  options.keys = keys_;
  options.idle = context_.idle;
  return Joiner::Begin(std::move(options));
}

}  // namespace gannet
