#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/rdma/address.h"
#include "common/rdma/multicast.h"
#include "tools/kvcli/answers.h"
#include "tools/kvcli/discovery.h"
#include "tools/kvcli/run_verbs.h"

namespace gannet::kvcli {
namespace {

constexpr int64_t kJoinNsMax = 10 * kNsPerSecond;
constexpr std::chrono::milliseconds kWait{3'000};  // servers announce themselves once a second

// Errors are those of MulticastMember.
absl::StatusOr<int> Listen(const Command& command, bool json) {
  const std::optional<SocketAddress> group = NumericAddress(command.announce, 0);
  if (!group) {
    return absl::InvalidArgumentError(
        absl::StrCat("--announce=", command.announce, " is no multicast address"));
  }
  GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<MulticastMember> member,
                          MulticastMember::Join(*group, std::nullopt, kJoinNsMax));
  const std::chrono::nanoseconds wait = command.wait.value_or(kWait);
  const int64_t deadline_ns = MonotonicNs() + wait.count();
  Discovery found;
  const uint64_t enough = command.count.value_or(Discovery::kServersMax);
  while (found.size() < enough && MonotonicNs() < deadline_ns) {
    GANNET_ASSIGN_OR_RETURN(const auto datagram, member->Receive(deadline_ns - MonotonicNs()));
    if (!datagram) break;
    const absl::StatusOr<ServerAnnouncement> it = DecodeAnnouncement(*datagram);
    if (it.ok()) found.Add(*it);
  }
  if (json) {
    Say(Dump(found.AsJson()) + "\n");
  } else if (found.empty()) {
    Say(absl::StrCat("no server announces itself at ", command.announce, "\n"));
  } else {
    Say(found.Text());
  }
  return found.empty() ? int{kExitNotFound} : int{kExitDone};
}

}  // namespace

int RunDiscover(const Command& command, const Invocation& invocation, char** argv) {
  const absl::Status device = ChooseDevice(invocation, invocation.verbose, argv);
  if (!device.ok()) return Fail(kExitError, device, invocation.json);
  const absl::StatusOr<int> code = Listen(command, invocation.json);
  return code.ok() ? *code : Fail(kExitError, code.status(), invocation.json);
}

}  // namespace gannet::kvcli
