#include "softverbs/base/gid_table.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "softverbs/base/devices.h"
#include "softverbs/base/fork.h"
#include "softverbs/base/gid.h"
#include "softverbs/base/log.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/net_config.h"

namespace softverbs {
namespace {

struct InterfaceAddress {
  ibv_gid gid;
  uint32_t interface;
};

struct FreeInterfaces {
  void operator()(ifaddrs* interfaces) const { freeifaddrs(interfaces); }
};

std::optional<ibv_gid> ToGid(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    return MappedIpv4(reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  ibv_gid gid;
  memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, sizeof(gid.raw));
  return gid;
}

// Returns the link-local address that is made of an interface's MAC address (RFC 4291, appendix A),
// or nothing if it has none.
std::optional<ibv_gid> LinkLocalOf(const sockaddr* address) {
  if (address == nullptr || address->sa_family != AF_PACKET) return std::nullopt;
  const auto* link = reinterpret_cast<const sockaddr_ll*>(address);
  if (link->sll_halen != 6) return std::nullopt;
  const uint8_t* mac = link->sll_addr;
  constexpr uint8_t kUniversal = 2;
  return ibv_gid{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(mac[0] ^ kUniversal), mac[1],
                  mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}};
}

bool IsLinkLocal(const ibv_gid& gid) {
  if (IsMappedIpv4(gid)) return gid.raw[12] == 169 && gid.raw[13] == 254;
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

ibv_gid LoopbackGid() { return MappedIpv4({htonl(INADDR_LOOPBACK)}); }

// The order of the table: what the fewest hosts reach comes last.
enum class Reach { kIpv4, kIpv6, kLink, kHost };

Reach ReachOf(const ibv_gid& gid, unsigned interface_flags) {
  if ((interface_flags & IFF_LOOPBACK) != 0) return Reach::kHost;
  if ((interface_flags & IFF_RUNNING) == 0 || IsLinkLocal(gid)) return Reach::kLink;
  return IsMappedIpv4(gid) ? Reach::kIpv4 : Reach::kIpv6;
}

struct LocalAddresses {
  std::vector<InterfaceAddress> all;  // in the table's order, without 127.0.0.1
  uint32_t loopback = 0;              // the interface
};

LocalAddresses FindLocalAddresses() {
  LocalAddresses found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, FreeInterfaces> owned(list);
  std::vector<std::pair<Reach, InterfaceAddress>> ranked;
  std::vector<InterfaceAddress> of_macs;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const uint32_t interface = if_nametoindex(entry->ifa_name);
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0) {
      found.loopback = interface;
    } else if (const auto gid = LinkLocalOf(entry->ifa_addr)) {
      of_macs.push_back({*gid, interface});
    }
    if (const auto gid = ToGid(entry->ifa_addr); gid && !Equal(*gid, LoopbackGid())) {
      ranked.push_back({ReachOf(*gid, entry->ifa_flags), {*gid, interface}});
    }
  }
  // An interface without any address is not used.
  for (const InterfaceAddress& address : of_macs) {
    if (std::ranges::any_of(
            ranked, [&](const auto& each) { return each.second.interface == address.interface; })) {
      ranked.push_back({Reach::kLink, address});
    }
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& each) { return each.first; });
  for (const auto& each : ranked) found.all.push_back(each.second);
  return found;
}

class GidTable {
 public:
  explicit GidTable(int port) : port_(port) {}

  std::optional<Gid> At(int index) {
    const LockGuard guard(mutex_);
    Fill();
    const auto at = static_cast<size_t>(index);
    if (index < 0 || at >= entries_.size() || !entries_[at].valid) return std::nullopt;
    return ToGid(at);
  }
  std::vector<Gid> All() {
    const LockGuard guard(mutex_);
    Fill();
    std::vector<Gid> all;
    for (size_t at = 0; at < entries_.size(); ++at) {
      if (entries_[at].valid) all.push_back(ToGid(at));
    }
    return all;
  }
  std::optional<int> Find(const ibv_gid& gid) {
    const LockGuard guard(mutex_);
    Fill();
    if (const auto index = FindLocked(gid)) return index;
    Read();
    return FindLocked(gid);
  }
  void Refresh() {
    const LockGuard guard(mutex_);
    Read();
  }

 private:
  struct Entry {
    InterfaceAddress address;
    bool valid;
  };

  void Fill() SV_REQUIRES(mutex_) {
    if (entries_.empty()) Read();
  }
  Gid ToGid(size_t at) SV_REQUIRES(mutex_) {
    return {static_cast<int>(at), entries_[at].address.gid, entries_[at].address.interface};
  }
  std::optional<int> FindLocked(const ibv_gid& gid) SV_REQUIRES(mutex_) {
    for (size_t at = 0; at < entries_.size(); ++at) {
      if (entries_[at].valid && Equal(entries_[at].address.gid, gid)) return static_cast<int>(at);
    }
    return std::nullopt;
  }

  // Makes the entries those of the host's present addresses.
  void Read() SV_REQUIRES(mutex_) {
    const LocalAddresses addresses = FindLocalAddresses();
    for (Entry& entry : entries_) entry.valid = false;
    if (const NetConfig* net = Net()) {
      const ibv_gid& gid = net->gids[static_cast<size_t>(port_)];
      EnterFixed({gid, InterfaceOf(gid, addresses)});
    }
    for (const InterfaceAddress& address : addresses.all) {
      if (PortOf(address.gid) == port_) Enter(address);
    }
    for (const ibv_gid& gid : LoopbackGidsOf(port_)) EnterFixed({gid, addresses.loopback});
  }
  static uint32_t InterfaceOf(const ibv_gid& gid, const LocalAddresses& addresses) {
    // All of 127.0.0.0/8 is of the loopback interface, which lists only the addresses given to it.
    if (IsLoopback(gid)) return addresses.loopback;
    const auto found =
        std::find_if(addresses.all.begin(), addresses.all.end(),
                     [&](const InterfaceAddress& each) { return Equal(each.gid, gid); });
    return found == addresses.all.end() ? 0 : found->interface;
  }
  // Enters an address that keeps its index whatever interface has it.
  void EnterFixed(const InterfaceAddress& address) SV_REQUIRES(mutex_) {
    for (Entry& entry : entries_) {
      if (Equal(entry.address.gid, address.gid)) entry.address.interface = address.interface;
    }
    Enter(address);
  }
  void Enter(const InterfaceAddress& address) SV_REQUIRES(mutex_) {
    const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return Equal(entry.address.gid, address.gid) && entry.address.interface == address.interface;
    });
    if (same != entries_.end()) {
      same->valid = true;
    } else if (entries_.size() < kGidTableSize) {
      entries_.push_back({address, true});
    } else {
      const auto hole = std::find_if(entries_.begin(), entries_.end(),
                                     [](const Entry& entry) { return !entry.valid; });
      if (hole != entries_.end()) *hole = {address, true};
    }
  }

  const int port_;
  Mutex mutex_;
  std::vector<Entry> entries_ SV_GUARDED_BY(mutex_);
};

std::array<std::atomic<GidTable*>, kMaxPorts> the_tables{};

// Never destroyed. A forked child gets a new one, because the parent's mutex may be held there by a
// thread that does not exist.
GidTable& Table(int port) {
  static const bool created = [] {
    const auto renew = [] {
      for (int each = 0; each < PortCount(); ++each) {
        the_tables[static_cast<size_t>(each)].store(new GidTable(each), std::memory_order_relaxed);
      }
    };
    OnForkChild(renew);
    renew();  // relaxed: the guard of this static orders it before every caller's load
    return true;
  }();
  (void)created;
  return *the_tables[static_cast<size_t>(port)].load(std::memory_order_relaxed);
}

}  // namespace

std::optional<Gid> GidAt(int port, int index) { return Table(port).At(index); }
std::vector<Gid> ValidGids(int port) { return Table(port).All(); }
std::optional<int> FindGid(const ibv_gid& gid) { return Table(PortOf(gid)).Find(gid); }
void RefreshGids() {
  for (int port = 0; port < PortCount(); ++port) Table(port).Refresh();
}

bool IsGidOfThisHost(const ibv_gid& gid) {
  const NetConfig* net = Net();
  if (net != nullptr && IsLoopback(net->gid()) && IsLoopback(gid)) return net->Has(gid);
  return IsLoopback(gid) || FindGid(gid).has_value();
}

bool StaysOnThisHost(const ibv_gid& gid) {
  return IsGidOfThisHost(gid) && !(NetReachesSelf() && Net()->Has(gid));
}

bool IsReachable(int port, const ibv_gid& gid, int source) {
  const NetConfig* net = Net();
  if (net == nullptr) {
    Report("destination GID is of another host: same host only, unless SOFTVERBS_NET is set");
    return false;
  }
  const ibv_gid& own = net->gids[static_cast<size_t>(port)];
  const auto from = GidAt(port, source);
  if (!IsSocketAddress(gid) || IsMappedIpv4(gid) != IsMappedIpv4(own)) {
    Report("destination GID is no address that SOFTVERBS_NET's address reaches");
    return false;
  }
  if (from && Equal(from->gid, own)) return true;
  Report("GID %d is not the address of SOFTVERBS_NET: only GID %d reaches other hosts", source,
         FindGid(own).value_or(0));
  return false;
}

int CheckMulticast() {
  if (Net() == nullptr) return 0;
  Report("multicast does not leave the host: it is refused while SOFTVERBS_NET is set");
  return EOPNOTSUPP;
}

int LoopbackGidIndex(int port) {
  const std::vector<ibv_gid> loopbacks = LoopbackGidsOf(port);
  return loopbacks.empty() ? 0 : FindGid(loopbacks.back()).value_or(0);
}

}  // namespace softverbs
