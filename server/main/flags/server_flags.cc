// The flags of kvserver, and the options that they make. CheckFlags checks what needs nothing
// else, so flags that are wrong are refused before a server is made.

#include "server/main/flags/server_flags.h"

#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/base/status_macros.h"
#include "common/protocol/limits.h"
#include "common/protocol/rails_reply.h"
#include "common/rdma/address.h"
#include "glog/logging.h"
#include "server/main/control/announcer.h"
#include "server/main/control/byte_size.h"
#include "server/main/control/numa.h"

DEFINE_string(listen, "",
              "ADDR:PORT to accept clients on; a PORT alone means every address, port 0 takes any; "
              "several, with commas, are rails of one server, each on the device that has it. "
              "Empty: port 7471 of every address, but on softverbs only of 127.0.0.1 if there is "
              "neither --auth_file nor --advertise, as anybody might connect");
DEFINE_string(name, "",
              "what clients call this server when they choose whose keys are whose; without it its "
              "address. With --cluster: which member this server is");
DEFINE_string(auth_file, "",
              "file of keys, one of which clients must have: lines of ID HEXKEY [read | replica]; "
              "empty: $GANNET_AUTH_FILE, and without that everybody may connect. It is read again "
              "when it changes, and on SIGHUP");
DEFINE_string(memory, "1G", "bytes of the region: index and heap; K, M, G, T are powers of 1024");
DEFINE_string(memory_file, "",
              "file on tmpfs or hugetlbfs that the region is, such as /dev/shm/gannet: the next "
              "start takes its items over, also after kill -9; without it they end with the "
              "process");
DEFINE_uint64(index_slots, 0, "items that the index has room for at first; 0 = by memory");
DEFINE_bool(index_grows, true, "whether the index grows when it fills");
DEFINE_uint64(lock_words, 65536, "lock words; keys whose hashes meet in one share a lock");
DEFINE_uint32(workers, 1, "threads that serve requests");
DEFINE_string(hugepages, "auto", "auto: where the system has reserved some; off");
DEFINE_string(numa, "auto",
              "the NUMA node whose cores and memory the server uses: auto (the device's), a node's "
              "number, or off");
DEFINE_string(device, "auto",
              "auto, soft (the user-space device), or a name as ibv_devices has it");
DEFINE_uint32(busy_poll_us, 100,
              "how long a worker polls after the last request before it sleeps; longer costs CPU, "
              "shorter costs each request a wake-up");
DEFINE_uint32(session_grace_ms, 30000,
              "how long the answers of a client that lost its connection are remembered");
DEFINE_uint32(
    silence_ms, gannet::kSilenceMsDefault,
    "after how long without a word a peer is dead; clients hear of it when they connect, and "
    "send a heartbeat every tenth of it");
DEFINE_uint32(
    stop_wait_s, 30,
    "with --cluster: how long a server that is told to stop (SIGTERM) waits until another member "
    "has the group's items, if it is the last one that has them; 0: not at all, and a backup does "
    "not leave those in sync first");
DEFINE_string(announce, "",
              "multicast address, such as 239.71.71.71, that hears once a second where this server "
              "is, for kvcli discover; empty: nobody does");
DEFINE_string(http, "",
              "ADDR:PORT to show /metrics and a live page on, 127.0.0.1:9471 for example; empty: "
              "nowhere. Whoever reaches it sees addresses of clients, and no values");
DEFINE_bool(http_show_keys, false, "whether that page shows keys of slow requests");
DEFINE_uint32(
    slowlog_us, 10000,
    "requests that take the server as long are remembered, and shown on the page; 0: none");
DEFINE_string(log_file, "",
              "file that the log's lines are appended to, instead of stderr. SIGHUP opens it anew, "
              "for who renamed it");
DEFINE_bool(log_json, false, "whether the log's lines are JSON: time, level, source and message");
DEFINE_string(on_full, "reject",
              "what a write without room does: reject (it fails) or evict (other items go). With "
              "--cluster, the group has it: kvcli cluster set");
DEFINE_uint32(
    item_lease_ms, 0,
    "clients may keep copies of the most popular items, and answer GETs from them, for so "
    "long after the server said so; a write of such an item waits for as long. At most "
    "100; 0: no copies. Not with --cluster");
DEFINE_uint32(leased_items, 1024, "with --item_lease_ms: how many items at most, 1 to 65536");
DEFINE_string(tier, "",
              "directory on a disk for the values that memory has no room for, with "
              "--on_full=evict: a GET of one reads the disk. Not with --cluster or --data");
DEFINE_string(tier_bytes, "", "with --tier: bytes of that disk, as --memory has them; at least 1G");
DEFINE_string(data, "",
              "directory for the items, which the next run finds again; without it they are in "
              "memory only");
DEFINE_string(sync, "interval",
              "when what is written to --data is synced, so that it survives a power cut: always "
              "(before it is acknowledged, and before anybody sees it), interval (every "
              "--sync_interval_ms) or none (when the system likes to)");
DEFINE_uint32(sync_interval_ms, 1000, "for --sync=interval");
DEFINE_string(restore_from, "",
              "directory with a copy of a snapshot, or of a whole --data: what to begin with");
DEFINE_string(check, "",
              "reads this directory of --data, or this --memory_file, says what is in it, and "
              "serves nothing. The directory of --tier: says whether a start would take it");
DEFINE_string(upgrade_check, "",
              "says whether this version of kvserver takes over this --memory_file, or directory "
              "of --data or --tier, which another version may be using, and serves nothing");
DEFINE_string(ask_ready, "",
              "asks the kvserver that shows itself at this ADDR:PORT (--http) whether it is ready, "
              "and serves nothing: the exit code is 0 if it is. For health checks of containers");
DEFINE_bool(json, false, "for --check and --upgrade_check: print JSON");
DEFINE_string(cluster, "",
              "the cluster that this server is of; its group is the one that has --name as a "
              "member. kvcli cluster init makes a cluster. Empty: the server is alone");
DEFINE_string(etcd, "",
              "URL[,URL...] of the etcd that has the cluster's configuration, such as "
              "http://10.0.0.1:2379; for --cluster");
DEFINE_string(etcd_ca_file, "",
              "certificates (PEM) that sign etcd's, if its URLs are https; empty: the system's");
DEFINE_string(etcd_cert_file, "",
              "this server's certificate (PEM) for an etcd that asks for one (--client-cert-auth)");
DEFINE_string(etcd_key_file, "", "the key of --etcd_cert_file");
DEFINE_string(etcd_user, "", "the user for an etcd that asks for one (etcdctl auth enable)");
DEFINE_string(etcd_password_file, "",
              "file with the password of --etcd_user in its first line; nobody else may read it");
DEFINE_bool(etcd_compact, false,
            "whether this server, while it is its group's primary, has etcd forget every ten "
            "minutes what keys were before: for an etcd that nobody else uses, and that does not "
            "do so by itself (--auto-compaction-retention of etcd)");
DEFINE_string(advertise, "",
              "HOST:PORT where clients and the other members of the group reach this server; "
              "without it, where it listens, which must then be one address");

namespace gannet {
namespace {

constexpr uint32_t kWorkersMax = 64;
constexpr uint32_t kBusyPollUsMax = 1'000'000;
constexpr uint32_t kStopWaitSMost = 3600;

absl::Status CheckLeases() {
  if (FLAGS_item_lease_ms > kItemLeaseMsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--item_lease_ms must be at most ", kItemLeaseMsMax));
  }
  if (FLAGS_leased_items < 1 || FLAGS_leased_items > kLeasedItemsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--leased_items must be 1 to ", kLeasedItemsMax));
  }
  return absl::OkStatus();
}

absl::Status CheckTier() {
  if (FLAGS_tier.empty()) {
    if (FLAGS_tier_bytes.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--tier_bytes needs --tier=DIR");
  }
  const auto without = [](const char* flag, const char* why) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tier cannot be used together with ", flag, ": ", why));
  };
  if (!FLAGS_cluster.empty()) {
    return without("--cluster", "the members of a group do not know of each other's disks yet");
  }
  if (!FLAGS_data.empty()) return without("--data", "a tier keeps nothing for the next run");
  if (FLAGS_on_full != "evict") {
    return absl::InvalidArgumentError(
        "--tier needs --on_full=evict: what is evicted goes to the tier");
  }
  if (FLAGS_tier_bytes.empty()) {
    return absl::InvalidArgumentError("--tier needs --tier_bytes: how much of the disk it may use");
  }
  return absl::OkStatus();
}

// Checks everything about the flags that needs nothing else.
absl::Status CheckFlags() {
  if (FLAGS_workers < 1 || FLAGS_workers > kWorkersMax) {
    return absl::InvalidArgumentError(absl::StrCat("--workers must be 1 to ", kWorkersMax));
  }
  for (const auto& [name, value] : PolicyOfFlags().settings) {
    if (const absl::Status status = FindPolicySetting(name)->Check(value); !status.ok()) {
      return {status.code(), absl::StrCat("--", status.message())};
    }
  }
  if (FLAGS_hugepages != "auto" && FLAGS_hugepages != "off") {
    return absl::InvalidArgumentError("--hugepages must be auto or off");
  }
  GANNET_RETURN_IF_ERROR(CheckNumaFlag(FLAGS_numa));
  if (!FLAGS_announce.empty()) GANNET_RETURN_IF_ERROR(Announcer::CheckGroup(FLAGS_announce));
  if (FLAGS_busy_poll_us > kBusyPollUsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--busy_poll_us must be at most ", kBusyPollUsMax));
  }
  if (!FLAGS_memory_file.empty() && !(FLAGS_data.empty() && FLAGS_restore_from.empty())) {
    return absl::InvalidArgumentError(
        "--memory_file cannot be used together with --data or --restore_from: choose --data if the "
        "items must outlive the machine's memory");
  }
  if (FLAGS_stop_wait_s > kStopWaitSMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stop_wait_s must be at most ", kStopWaitSMost));
  }
  GANNET_RETURN_IF_ERROR(CheckLeases());
  GANNET_RETURN_IF_ERROR(CheckTier());
  GANNET_RETURN_IF_ERROR(Check(FlagsOfCluster()));
  if (FLAGS_sync == "always" && FLAGS_data.empty()) {
    return absl::InvalidArgumentError(
        "--sync=always needs --data=DIR: without it nothing is written to a disk, so nothing "
        "would be synced before it is acknowledged");
  }
  return absl::OkStatus();
}

// Without --listen. RDMA devices have no loopback address, so there it has to be another one.
std::string ListenByDefault(DeviceKind kind) {
  const bool for_this_machine =
      kind == DeviceKind::kSoftverbs && FLAGS_auth_file.empty() && FLAGS_advertise.empty();
  return absl::StrCat(for_this_machine ? "127.0.0.1:" : "0.0.0.0:", kDefaultPort);
}

absl::Status CheckRails(const std::vector<SocketAddress>& addresses) {
  if (addresses.size() > kRailsMax) {
    return absl::InvalidArgumentError(absl::StrCat("--listen has ", addresses.size(),
                                                   " addresses; a server has at most ", kRailsMax,
                                                   " rails"));
  }
  std::set<std::string> seen;
  for (const SocketAddress& address : addresses) {
    const std::string host = address.HostString();
    if (host == "0.0.0.0" || host == "::") {
      return absl::InvalidArgumentError(
          absl::StrCat("--listen=", FLAGS_listen, ": ", host,
                       " is of all devices; with several addresses, name one of each device"));
    }
    if (!seen.insert(address.ToString()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--listen=", FLAGS_listen, " has ", address.ToString(), " twice"));
    }
  }
  return absl::OkStatus();
}

// Fills in what the flags say. All else stays as it is.
absl::Status Fill(Server::Options* options) {
  GANNET_RETURN_IF_ERROR(CheckFlags());
  const absl::StatusOr<uint64_t> memory_bytes = ParseByteSize(FLAGS_memory);
  GANNET_RETURN_IF_ERROR(Named("memory", FLAGS_memory, memory_bytes.status()));
  options->memory_bytes = *memory_bytes;
  GANNET_RETURN_IF_ERROR(ListenAddresses(DeviceKind::kSoftverbs).status());  // of a wrong --listen
  options->name = FLAGS_name;
  options->auth_file = FLAGS_auth_file;
  options->answer_while_starting = true;
  options->memory_file = FLAGS_memory_file;
  options->index_slots = FLAGS_index_slots;
  options->evict = FLAGS_on_full == "evict";
  options->index_grows = FLAGS_index_grows;
  options->item_lease_ms = FLAGS_item_lease_ms;
  options->leased_items = FLAGS_leased_items;
  // Whatever this process does, the one before may have leased items.
  options->former_leases_ms = kItemLeaseMsMax;
  options->disk = {.data = FLAGS_data,
                   .sync = *SyncNamed(FLAGS_sync),
                   .sync_interval_ns = int64_t{FLAGS_sync_interval_ms} * kNsPerMs,
                   .restore_from = FLAGS_restore_from};
  if (!FLAGS_tier.empty()) {
    const absl::StatusOr<uint64_t> tier_bytes = ParseByteSize(FLAGS_tier_bytes);
    GANNET_RETURN_IF_ERROR(Named("tier_bytes", FLAGS_tier_bytes, tier_bytes.status()));
    if (*tier_bytes < kTierBytesMin) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tier_bytes must be at least ", kTierBytesMin >> 30, "G"));
    }
    options->tier = {.directory = FLAGS_tier, .bytes = *tier_bytes};
  }
  options->lock_words = FLAGS_lock_words;
  options->workers = FLAGS_workers;
  options->huge_pages = FLAGS_hugepages == "off" ? HugePages::kOff : HugePages::kAuto;
  options->session_grace_ns = int64_t{FLAGS_session_grace_ms} * kNsPerMs;
  options->silence_ms = FLAGS_silence_ms;
  options->slow_ns = int64_t{FLAGS_slowlog_us} * kNsPerUs;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<SocketAddress>> ListenAddresses(DeviceKind kind) {
  const std::string listen = FLAGS_listen.empty() ? ListenByDefault(kind) : FLAGS_listen;
  std::vector<SocketAddress> addresses;
  for (const std::string& text : std::vector<std::string>(absl::StrSplit(listen, ','))) {
    const absl::StatusOr<SocketAddress> address = ResolveListen(text, kDefaultPort);
    if (!address.ok()) return Named("listen", FLAGS_listen, address.status());
    addresses.push_back(*address);
  }
  if (addresses.size() > 1) GANNET_RETURN_IF_ERROR(CheckRails(addresses));
  return addresses;
}

ClusterFlags FlagsOfCluster() {
  return {.cluster = FLAGS_cluster,
          .etcd = FLAGS_etcd,
          .etcd_access = {.ca_file = FLAGS_etcd_ca_file,
                          .cert_file = FLAGS_etcd_cert_file,
                          .key_file = FLAGS_etcd_key_file,
                          .user = FLAGS_etcd_user,
                          .password_file = FLAGS_etcd_password_file},
          .etcd_compact = FLAGS_etcd_compact,
          .advertise = FLAGS_advertise,
          .name = FLAGS_name,
          .listen = FLAGS_listen.substr(0, FLAGS_listen.find(',')),
          .auth_file = FLAGS_auth_file,
          .memory_file = FLAGS_memory_file,
          .restore_from = FLAGS_restore_from,
          .data = FLAGS_data,
          .sync = FLAGS_sync};
}

GroupPolicy PolicyOfFlags() {
  GroupPolicy policy;
  for (const PolicySetting& setting : PolicySettings()) {
    const std::string name = setting.name;
    policy.settings[name] = gflags::GetCommandLineFlagInfoOrDie(name.c_str()).current_value;
  }
  return policy;
}

std::vector<FlagGroup> FlagGroups() {
  return {{"Where it serves, and whom",
           "listen name device advertise announce auth_file session_grace_ms silence_ms"},
          {"Memory",
           "memory memory_file on_full index_slots index_grows lock_words hugepages item_lease_ms "
           "leased_items"},
          {"Threads and cores", "workers busy_poll_us numa"},
          {"Items on disk", "data sync sync_interval_ms restore_from tier tier_bytes"},
          {"What operators see", "log_file log_json http http_show_keys slowlog_us"},
          {"Instead of serving", "check upgrade_check json ask_ready"},
          {"In a cluster",
           "cluster etcd etcd_ca_file etcd_cert_file etcd_key_file etcd_user etcd_password_file "
           "etcd_compact stop_wait_s"}};
}

absl::Status Named(std::string_view flag, std::string_view value, const absl::Status& status) {
  if (status.ok()) return status;
  const std::string named = absl::StrCat("--", std::string(flag), "=", std::string(value));
  return {status.code(), absl::StrCat(named, ": ", status.message())};
}

absl::StatusOr<Server::Options> OptionsFromFlags() {
  Server::Options options{.clocks = MachineClocks()};
  GANNET_RETURN_IF_ERROR(Fill(&options));
  return options;
}

absl::Status TakePolicy(const GroupPolicy& policy, const std::string& group,
                        Server::Options* options) {
  std::vector<std::string> taken;
  for (const PolicySetting& setting : PolicySettings()) {
    const std::string name = setting.name;
    const auto flag = gflags::GetCommandLineFlagInfoOrDie(name.c_str());
    const std::string& own = flag.current_value;
    const std::optional<std::string> of_group = policy.Find(name);
    const std::string set = absl::StrCat("kvcli cluster set ", group, " ", name, "=", own);
    if (!of_group && !flag.is_default) {
      LOG(WARNING) << "group " << group << " has no " << name << ", so --" << name << "=" << own
                   << " counts for this member alone, unless it founds the group. To have it for "
                      "all members: "
                   << set;
    }
    if (!of_group || *of_group == own) continue;
    taken.push_back(absl::StrCat(name, "=", *of_group));
    if (!flag.is_default) {
      LOG(WARNING) << "--" << name << "=" << own << " does not count: group " << group << " has "
                   << taken.back() << ". Take the flag away, or change it for all members: " << set;
    }
    gflags::SetCommandLineOption(name.c_str(), of_group->c_str());
  }
  for (const std::string& unknown : policy.Unknown()) {
    LOG(WARNING) << "group " << group << " has " << unknown
                 << ", which this version of Gannet does not know, and does not do. Update it";
  }
  if (taken.empty()) return absl::OkStatus();
  const absl::Status filled = Fill(options);
  if (filled.ok()) return filled;
  return {filled.code(), absl::StrCat("group ", group, " has ", absl::StrJoin(taken, ", "),
                                      " for all members: ", filled.message())};
}
}  // namespace gannet
