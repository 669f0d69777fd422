#include "softverbs/nic/link_directory.h"

#include <sys/epoll.h>

#include <utility>

#include "softverbs/base/log.h"
#include "softverbs/base/mutex.h"
#include "softverbs/nic/nic.h"

namespace softverbs {

LinkDirectory::LinkDirectory(Nic* nic, UniqueFd listener)
    : nic_(nic), listener_(std::move(listener)) {}

void LinkDirectory::Start() {
  Loop::Get().Add(listener_.get(), EPOLLIN, [this](uint32_t) { OnListener(); });
}

std::shared_ptr<Link> LinkDirectory::FindLocked(uint32_t slot) {
  auto found = links_.find(slot);
  if (found == links_.end() || found->second->state() == Link::State::kDown) return nullptr;
  return found->second;
}

std::shared_ptr<Link> LinkDirectory::Get(uint32_t slot) {
  std::shared_ptr<Link> link;
  {
    const LockGuard guard(mutex_);
    link = FindLocked(slot);
    if (link) return link;
    link = slot == nic_->slot()  ? OpenLoopback(slot)
           : slot > nic_->slot() ? Dial(slot)
                                 : Knock(slot);
    if (!link) {
      link = std::make_shared<Link>(slot);
      link->GoDown();
      return link;
    }
    links_[slot] = link;
  }
  nic_->engine().AddLink(link);
  nic_->WakeLoop();  // the link may have come up and received packets before the engine knew it
  return link;
}

std::shared_ptr<Link> LinkDirectory::OpenLoopback(uint32_t slot) {
  auto link = std::make_shared<Link>(slot);
  UniqueFd memory = CreateSealedMemory("softverbs-link", Link::MemoryBytes());
  if (!memory || !link->Attach(memory.get(), Link::Side::kLoopback)) return nullptr;
  link->AttachOwnTables(nic_->tables());
  return link;
}

std::shared_ptr<Link> LinkDirectory::Dial(uint32_t slot) {
  UniqueFd socket = ConnectToSlot(slot);
  UniqueFd memory = CreateSealedMemory("softverbs-link", Link::MemoryBytes());
  if (!socket || !memory) return nullptr;
  auto link = std::make_shared<Link>(slot);
  const ControlMessage hello{.type = ControlType::kHello, .slot = nic_->slot()};
  if (!link->Attach(memory.get(), Link::Side::kDialer) ||
      !SendControl(socket.get(), hello, {memory.get(), nic_->tables_fd()})) {
    return nullptr;
  }
  Watch(link, std::move(socket));
  return link;
}

std::shared_ptr<Link> LinkDirectory::Knock(uint32_t slot) {
  UniqueFd socket = ConnectToSlot(slot);
  const ControlMessage knock{.type = ControlType::kDialMe, .slot = nic_->slot()};
  if (!socket || !SendControl(socket.get(), knock)) return nullptr;
  auto link = std::make_shared<Link>(slot);
  // The end of file on this socket means that the peer died before it opened the link.
  const int fd = socket.get();
  Loop::Get().Post([this, link, fd, knocked = std::make_shared<UniqueFd>(std::move(socket))] {
    link->KeepKnock(std::move(*knocked));
    if (link->state() != Link::State::kConnecting) return;
    link->SetWatch(Loop::Get().Add(fd, EPOLLIN, [this, link](uint32_t) { End(link); }));
  });
  return link;
}

void LinkDirectory::Watch(const std::shared_ptr<Link>& link, UniqueFd socket) {
  const int fd = socket.get();
  link->SetSocket(std::move(socket));
  Loop::Get().Post([this, link, fd] {
    Loop::Get().Remove(link->watch());  // the watch of the knock's socket
    link->SetWatch(Loop::Get().Add(fd, EPOLLIN, [this, link](uint32_t) { OnLinkSocket(link); }));
  });
}

void LinkDirectory::OnListener() {
  while (UniqueFd socket = AcceptPeer(listener_.get())) {
    const int fd = socket.get();
    Newcomer& newcomer = newcomers_[fd];
    newcomer.socket = std::move(socket);
    newcomer.watch = Loop::Get().Add(fd, EPOLLIN, [this, fd](uint32_t) { OnNewcomer(fd); });
  }
}

void LinkDirectory::OnNewcomer(int fd) {
  ControlMessage message;
  std::vector<UniqueFd> fds;
  const ReceiveResult result = ReceiveControl(fd, &message, &fds);
  if (result == ReceiveResult::kNothing) return;
  Newcomer newcomer = std::move(newcomers_.at(fd));
  newcomers_.erase(fd);
  Loop::Get().Remove(newcomer.watch);
  if (result == ReceiveResult::kClosed) return;
  if (message.type == ControlType::kCaller && fds.size() == 1) {
    nic_->remote_links().Answer(std::move(fds[0]));
  } else if (message.type == ControlType::kHello) {
    Welcome(std::move(newcomer.socket), message, fds);
  } else if (message.type == ControlType::kDialMe && message.slot > nic_->slot() &&
             message.slot < kSlots) {
    Get(message.slot)->KeepKnock(std::move(newcomer.socket));
  }
}

// Accepts a link that a peer with a lower slot opened. If we asked the peer for it, the link exists
// already and is connecting.
void LinkDirectory::Welcome(UniqueFd socket, const ControlMessage& hello,
                            const std::vector<UniqueFd>& fds) {
  if (fds.size() != 2 || hello.slot == 0 || hello.slot >= nic_->slot() ||
      !IsSealedMemory(fds[0].get(), Link::MemoryBytes())) {
    return;
  }
  std::shared_ptr<Link> link, stale;
  bool is_new = false;
  {
    const LockGuard guard(mutex_);
    link = FindLocked(hello.slot);
    if (link && link->state() == Link::State::kUp) {
      stale = std::exchange(link, nullptr);  // its process died, and the slot has a new owner
    }
    is_new = !link;
    if (is_new) link = links_[hello.slot] = std::make_shared<Link>(hello.slot);
  }
  if (stale) End(stale);
  const ControlMessage welcome{.type = ControlType::kWelcome, .slot = nic_->slot()};
  if (!link->AttachTables(fds[1].get())) return End(link);
  // Fails if the peer has ended by now. What it sent is executed all the same: programs send
  // datagrams and exit. Its end is seen at the socket.
  SendControl(socket.get(), welcome, {nic_->tables_fd()});
  Watch(link, std::move(socket));
  if (is_new) nic_->engine().AddLink(link);
  if (!link->Attach(fds[0].get(), Link::Side::kAcceptor)) return End(link);
  // The peer may have sent packets already, and our queue pairs may wait for the link.
  nic_->engine().OnDoorbell();
}

void LinkDirectory::OnLinkSocket(const std::shared_ptr<Link>& link) {
  for (;;) {
    ControlMessage message;
    std::vector<UniqueFd> fds;
    const ReceiveResult result = ReceiveControl(link->socket(), &message, &fds);
    if (result == ReceiveResult::kNothing) break;
    if (result == ReceiveResult::kClosed || !OnMessage(*link, message, fds)) return End(link);
  }
  nic_->engine().OnDoorbell();
}

bool LinkDirectory::OnMessage(Link& link, const ControlMessage& message,
                              std::vector<UniqueFd>& fds) {
  switch (message.type) {
    case ControlType::kWelcome:
      return fds.size() == 1 && link.peer_tables() == nullptr && link.AttachTables(fds[0].get());
    case ControlType::kDoorbell:
      return true;
    case ControlType::kRegionRequest:
      SendRegion(link, message.region);
      return true;
    case ControlType::kRegion:
      if (fds.size() == 1) {
        link.regions().Install(message.region, fds[0].get(), message.writable != 0);
      }
      return true;
    case ControlType::kRegionGone:
      nic_->Unmap(link.regions().Retire(message.region));
      return true;
    case ControlType::kBellRequest:
      SendBell(link, message.region);
      return true;
    case ControlType::kBell:
      if (fds.size() == 1) link.InstallBell(message.region, std::move(fds[0]));
      return true;
    case ControlType::kBellGone:
      link.RetireBell(message.region);
      return true;
    default:
      return false;
  }
}

void LinkDirectory::SendRegion(Link& link, uint32_t region) {
  const ExportedRegions::Handle handle = nic_->exported().Open(region);
  ControlMessage answer{.type = ControlType::kRegion, .region = region};
  answer.writable = handle.writable ? 1 : 0;
  if (handle.fd) {
    SendControl(link.socket(), answer, {handle.fd.get()});
  } else {
    SendControl(link.socket(), answer);
  }
}

void LinkDirectory::SendBell(Link& link, uint32_t bell) {
  const UniqueFd fd = nic_->bells().Open(bell);
  const ControlMessage answer{.type = ControlType::kBell, .region = bell};
  if (fd) {
    SendControl(link.socket(), answer, {fd.get()});
  } else {
    SendControl(link.socket(), answer);
  }
}

void LinkDirectory::AnnounceBellGone(uint32_t bell) {
  for (const std::shared_ptr<Link>& link : All()) {
    if (link->peer_slot() == nic_->slot() || link->state() != Link::State::kUp) continue;
    SendControl(link->socket(), {.type = ControlType::kBellGone, .region = bell});
  }
}

void LinkDirectory::RequestRegion(Link& link, uint32_t region) {
  if (!link.regions().NoteRequested(region)) return;
  if (link.peer_slot() == nic_->slot()) {
    const ExportedRegions::Handle handle = nic_->exported().Open(region);
    if (handle.fd) link.regions().Install(region, handle.fd.get(), handle.writable);
  } else {
    SendControl(link.socket(), {.type = ControlType::kRegionRequest, .region = region});
  }
}

void LinkDirectory::AnnounceRegionGone(uint32_t region) {
  for (const std::shared_ptr<Link>& link : All()) {
    if (link->peer_slot() == nic_->slot()) {
      nic_->Unmap(link->regions().Retire(region));
    } else if (link->state() == Link::State::kUp) {
      SendControl(link->socket(), {.type = ControlType::kRegionGone, .region = region});
    }
  }
}

std::vector<std::shared_ptr<Link>> LinkDirectory::All() {
  std::vector<std::shared_ptr<Link>> all;
  const LockGuard guard(mutex_);
  all.reserve(links_.size());
  for (const auto& [slot, link] : links_) all.push_back(link);
  return all;
}

void LinkDirectory::Drop(uint32_t slot) {
  Loop::Get().Post([this, slot] {
    std::shared_ptr<Link> link;
    {
      const LockGuard guard(mutex_);
      link = FindLocked(slot);
    }
    if (link) End(link);
  });
}

void LinkDirectory::End(const std::shared_ptr<Link>& link) {
  const std::shared_ptr<Link> keep = link;  // `link` may belong to the handler that Remove destroys
  Loop::Get().Remove(keep->watch());
  {
    const LockGuard guard(mutex_);
    auto found = links_.find(keep->peer_slot());
    if (found != links_.end() && found->second == keep) links_.erase(found);
  }
  Report("link to process slot %u ended", keep->peer_slot());
  nic_->engine().RemoveLink(keep);
}

}  // namespace softverbs
