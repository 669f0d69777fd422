// The thread that sends a datagram a second. Errors are logged once, and it goes on: nothing else
// depends on being found by multicast.

#include "server/main/control/announcer.h"

#include <netinet/in.h>
#include <poll.h>

#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"

namespace gannet {
namespace {

constexpr int64_t kJoinNsMax = 10 * kNsPerSecond;

bool IsMulticast(const SocketAddress& address) {
  if (address.family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(*address.get());
    return IN_MULTICAST(ntohl(v4.sin_addr.s_addr));
  }
  return IN6_IS_ADDR_MULTICAST(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
}

bool IsAnyAddress(const SocketAddress& address) {
  const std::string host = address.HostString();
  return host == "0.0.0.0" || host == "::";
}

}  // namespace

absl::Status Announcer::CheckGroup(const std::string& group) {
  const std::optional<SocketAddress> address = NumericAddress(group, 0);
  if (address && IsMulticast(*address)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--announce=", group, " is no multicast address, such as 239.71.71.71"));
}

ServerAnnouncement AnnouncementOf(const Announcer::Options& options, const Member* member,
                                  uint64_t number) {
  ServerAnnouncement it = {.cluster = options.cluster,
                           .group = options.group_name,
                           .name = options.name,
                           .address = options.address,
                           .sequence = number};
  if (member != nullptr) {
    const Member::Seen seen = member->Look();
    it.epoch = seen.epoch;
    it.primary = seen.role == Member::Role::kPrimary;
  }
  return it;
}

absl::StatusOr<std::unique_ptr<Announcer>> Announcer::Start(const Options& options,
                                                            const Server* server) {
  if (options.group.empty()) return nullptr;
  Options complete = options;
  const SocketAddress listens = server->address();
  std::optional<SocketAddress> local;
  if (!IsAnyAddress(listens)) local = listens;
  if (complete.address.empty() && !local) {
    return absl::InvalidArgumentError(
        "--announce needs an address that clients can use: --listen=ADDR:PORT of one address, or "
        "--advertise");
  }
  if (complete.address.empty()) complete.address = listens.ToString();
  if (!CanAnnounce(AnnouncementOf(complete, nullptr, 1))) {
    return absl::InvalidArgumentError("--announce: the names and the address are too long");
  }
  GANNET_ASSIGN_OR_RETURN(
      std::unique_ptr<MulticastMember> member,
      MulticastMember::Join(*NumericAddress(options.group, 0), local, kJoinNsMax));
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WakeUp> stop, WakeUp::Create());
  std::unique_ptr<Announcer> announcer(
      new Announcer(complete, server, std::move(member), std::move(stop)));
  announcer->thread_ = std::thread([raw = announcer.get()] { raw->Run(); });
  LOG(INFO) << "announces " << complete.address << " to " << options.group;
  return announcer;
}

Announcer::~Announcer() {
  stop_->Ask();
  thread_.join();
}

void Announcer::Run() {
  uint64_t number = 0;
  bool failed = false;
  pollfd stop{.fd = stop_->fd(), .events = POLLIN, .revents = 0};
  do {
    const AnnounceBytes bytes =
        EncodeAnnouncement(AnnouncementOf(options_, server_->member(), ++number));
    const absl::Status sent = member_->Send(std::as_bytes(std::span(&bytes, 1)));
    if (!sent.ok() && !failed) LOG(WARNING) << "--announce: " << sent.message();
    failed = !sent.ok();
  } while (poll(&stop, 1, static_cast<int>(kEveryNs / kNsPerMs)) <= 0);
}

}  // namespace gannet
