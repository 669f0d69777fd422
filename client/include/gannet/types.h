#ifndef GANNET_TYPES_H_
#define GANNET_TYPES_H_

#include <gannet/abseil.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gannet {

// The types that Client and AsyncClient share. Nothing of verbs, glog or gflags is in the public
// headers.

enum class LogLevel : uint8_t { kInfo, kWarning, kError };

// How a call of Client, or AsyncClient::Wait, waits for an answer.
enum class Wait : uint8_t {
  // Polls without pause, on a core of its own, for the lowest latency. If there are more such
  // threads than cores, each waits for the turns of the others.
  kPoll,
  // Polls as long as an answer usually takes, then lets others have the core, then sleeps until the
  // answer comes.
  kAdaptive,
};

// The namespace has abseil's name, so that a program with another abseil does not link.
inline namespace GANNET_ABSEIL {

struct Options {
  // "auto", "soft", or a device name as `ibv_devices` lists it.
  std::string device = "auto";
  std::chrono::milliseconds connect_timeout{3000};
  // The deadline of every call that gives none of its own.
  std::chrono::milliseconds deadline{1000};
  // Memory for remembered item locations (16 bytes each); 0 = off.
  uint64_t location_cache_bytes = 1 << 20;
  // Memory for copies of the items that are read most, from which GETs are answered without asking
  // the server. 0 = off; otherwise 4 KiB to 64 GiB. Copies are used only while the server promises
  // that their items do not change (its --item_lease_ms), so answers are as right as READs. Leave
  // it off in a virtual machine whose CLOCK_BOOTTIME stands still while it is paused.
  uint64_t near_cache_bytes = 0;
  // A server may have several rails: addresses, each with a device (its --listen). So many are used
  // at most, 1 to 8; 1: only the one by which it was found. READs are spread over them, and go on
  // by the others if one is lost.
  uint32_t rails = 8;
  // The most operations in flight, over all servers; 1 to 16,384.
  uint32_t depth = 128;
  Wait wait = Wait::kAdaptive;
  // kAdaptive: the longest time that a call polls. It should be what sleeping and being woken costs
  // on the machine.
  std::chrono::microseconds poll_max{32};
  // Whether to reconnect after a broken connection, and to go on trying servers that could not be
  // reached. If false, every later call to such a server is Unavailable.
  bool reconnect = true;
  // A file of keys, for servers that have keys (their --auth_file): lines of ID HEXKEY [read]. Its
  // first key is this client's. Nobody but its owner may have rights to it. It is read by Connect
  // and, if it changed, before each new connection. Empty: the file that GANNET_AUTH_FILE names in
  // the environment. Without either, the client has no key, and believes every server.
  std::string auth_file;
  // Called with one line, without newline, from any thread of the client. It must not call the
  // client. Without it, nothing is printed.
  std::function<void(LogLevel, std::string_view)> log;
};

}  // namespace GANNET_ABSEIL

// The verbs that one operation cost its client.
struct OpCost {
  uint32_t read_bytes = 0;
  uint16_t reads = 0;
  uint16_t sends = 0;
  uint8_t cas = 0;
  bool from_near_cache = false;  // a GET that was answered from a copy (Options::near_cache_bytes)
  uint16_t posts = 0;        // doorbells: calls into the device, shared by chained work requests
  uint16_t completions = 0;  // polled
  bool from_cached_location = false;
  bool by_rpc = false;  // a GET that fell back to the server's CPU
};

struct ItemInfo {
  uint64_t version = 0;  // never 0 for an item that is there
  uint32_t flags = 0;
  // By the server's clock, since the Unix epoch; 0 = never. Other clocks may differ by hours, so
  // compare it only with the server's: see ttl_left.
  uint64_t expiry_ms = 0;
  uint32_t value_bytes = 0;  // of the whole value, even if the caller's buffer was shorter
  // How long the item still lived when it was read, or some ms more. 0 if it never expires, or if
  // its time is nearly over.
  std::chrono::milliseconds ttl_left{0};
};

struct Value {
  std::string data;
  ItemInfo info;
};

// A held lock. It is lost when its connection breaks or the holder is taken for dead, and nothing
// tells the holder. A write that carries it is then refused (Aborted).
struct Lock {
  std::string key;
  uint64_t word = 0;
  uint32_t server = 0;  // index of the endpoint
};

struct LockOptions {
  // How long the lock holds at most, counted from when it was taken or last extended. After that
  // the server breaks it, whatever the holder does, so a holder that hangs does not keep it for
  // ever. The server counts from when it got the request. So a holder must assume a lease that is
  // shorter by the round trip. A write under a broken lock is refused (Aborted), so a late holder
  // harms nobody. At least 1 ms. Without a lease the lock holds until it is unlocked, or its
  // holder's connection ends (docs/rails.md: over several rails, the session keeps some locks).
  std::optional<std::chrono::milliseconds> lease;
};

// A lock that somebody holds, as the server sees it.
struct HeldLock {
  uint64_t word = 0;        // names the connection that holds it
  uint32_t index = 0;       // of the lock word; keys may share one
  uint32_t session_id = 0;  // of the holder; 0: its connection is gone
  // The time until the server breaks it; 0: it has no lease.
  std::chrono::milliseconds lease{0};
  std::string holder;  // its address; empty: its connection is gone
};

struct PutOptions {
  uint32_t flags = 0;
  std::chrono::milliseconds ttl{0};  // 0 = for ever
  bool only_if_absent = false;
  bool only_if_present = false;
  std::optional<uint64_t> only_if_version;  // 0 = absent
  // The write happens only while this lock is held. It needs only_if_version, the version that was
  // read under the lock.
  const Lock* lock = nullptr;
};

struct DeleteOptions {
  std::optional<uint64_t> only_if_version;
  const Lock* lock = nullptr;
};

struct TouchOptions {
  std::optional<uint64_t> only_if_version;
  const Lock* lock = nullptr;
};

// Options of Append and Prepend. An existing item keeps its flags and its expiry.
struct ChangeOptions {
  // Flags and time to live of a new item, if there is none.
  uint32_t flags = 0;
  std::chrono::milliseconds ttl{0};
  bool only_if_present = false;  // if false, an absent key gets an item with the piece as its value
  std::optional<uint64_t> only_if_version;  // 0 = absent
  const Lock* lock = nullptr;               // needs only_if_version
};

// Options of Incr and Decr. An existing item keeps its flags and its expiry.
struct IncrOptions {
  int64_t initial = 0;  // the number that an absent key counts from
  // Flags and time to live of a new item, if there is none.
  uint32_t flags = 0;
  std::chrono::milliseconds ttl{0};
  bool only_if_present = false;
  std::optional<uint64_t> only_if_version;  // 0 = absent
  const Lock* lock = nullptr;               // needs only_if_version
};

struct ServerStats {
  std::string endpoint;
  uint64_t rpcs = 0;
  uint64_t heartbeats = 0;
  uint64_t cpu_us = 0;
  uint64_t slots_used = 0;
  uint64_t slots_total = 0;
  uint64_t heap_bytes = 0;
  uint64_t heap_total = 0;
  uint64_t sessions = 0;
  uint64_t connections = 0;
  uint64_t items = 0;
  uint64_t displacements = 0;
  uint64_t stash_used = 0;
  uint64_t locks_broken = 0;
  uint64_t uptime_ms = 0;
  // Bytes of memory for sessions, without queue pairs.
  uint64_t session_bytes = 0;
  // The cost of replies at the server's device: doorbells for replies and for receives, and
  // completions of sends.
  uint64_t reply_posts = 0;
  uint64_t receive_posts = 0;
  uint64_t send_completions = 0;
  // Writes that found no memory for the item, or no slot for the key.
  uint64_t refused_heap_full = 0;
  uint64_t refused_index_full = 0;
  // Items removed because their time was over, and items moved to bring free memory together.
  uint64_t items_expired = 0;
  uint64_t items_moved = 0;
  // Locks broken because their lease was over.
  uint64_t locks_expired = 0;
  uint64_t refused_connections = 0;
  // Requests that were malformed or against the rules.
  uint64_t refused_requests = 0;
  uint64_t index_growths = 0;  // how often the index was replaced by a larger one
  // Items that clients deleted, and items evicted because the memory was full.
  uint64_t items_deleted = 0;
  uint64_t items_evicted = 0;
  // The part of these that writes without room evicted. The background evicted the others.
  uint64_t evicted_by_writes = 0;
  // Bytes that a server that evicts keeps free; and how long ago the items that were evicted lately
  // had been written. If that age is only minutes, more memory would bring more hits.
  uint64_t eviction_watermark = 0;
  uint64_t evicted_age_ms = 0;
  // Figures of --data; all 0 without it. disk_sync: 1 none, 2 interval, 3 always.
  uint64_t disk_sync = 0;
  uint64_t disk_bytes = 0;
  // The bytes that a power cut would take now, and the age of the oldest of them.
  uint64_t disk_behind_bytes = 0;
  uint64_t disk_behind_ms = 0;
  uint64_t disk_refused = 0;    // writes that the disk refused
  uint64_t disk_snapshots = 0;  // since start
  uint64_t items_expiring = 0;  // the part of `items` that has a time to live
  // Of items of which clients may answer from copies.
  uint64_t items_leased = 0;     // now
  uint64_t lease_waits = 0;      // writes that ended a lease, and had to wait for its end
  uint64_t lease_waited_ms = 0;  // what these had to wait, all together
  // Figures of --tier; all 0 without it. tier_disk: 1 works, 2 slow, 3 full, 4 failed.
  uint64_t items_on_disk = 0;  // the part of `items` whose values are on the disk
  uint64_t tier_disk = 0;
  uint64_t tier_bytes = 0;         // of the disk
  uint64_t tier_written = 0;       // values, since start
  uint64_t tier_evicted = 0;       // values that went from the disk, for want of room
  uint64_t tier_reads = 0;         // of the disk
  uint64_t tier_reads_joined = 0;  // GETs that shared the read of another one
  uint64_t tier_reads_failed = 0;  // the part of tier_reads that found nothing; their GETs missed
  uint64_t tier_read_us = 0;       // what tier_reads took, all together
  uint64_t tier_page_cache = 0;    // 1: the disk is used through the system's page cache
  uint64_t tier_stub_bytes = 0;    // of the memory, that items_on_disk take
  uint64_t tier_stub_budget = 0;   // bytes that they may take
  uint64_t tier_promoted = 0;      // values that were read there, and are in memory since
};

// Where a server keeps its items besides memory, and its last snapshot.
struct ServerStorage {
  std::string endpoint;
  std::string sync;         // of --data: "none", "interval" or "always"; empty: there is no --data
  std::string directory;    // --data
  std::string memory_file;  // --memory_file; empty: none
  // The bytes that a power cut would take now, and the age of the oldest of them.
  uint64_t behind_bytes = 0;
  std::chrono::milliseconds behind{0};
  // The newest whole snapshot in the directory.
  struct Snapshot {
    uint64_t position = 0;  // of the journal, when it was begun
    uint64_t items = 0;
    uint64_t bytes = 0;
    // The time by the server's wall clock, since the Unix epoch; 0: an earlier run of the server
    // wrote it.
    std::chrono::milliseconds completed{0};
  };
  std::optional<Snapshot> snapshot;
};

// A rail of a server, as a client uses it.
struct RailInfo {
  std::string address;
  bool connected = false;
  uint64_t works = 0;  // READs and messages that were posted to it since the session's last connect
  uint64_t moves = 0;  // of its connections to their alternate paths, and back, since then
  bool alternate_path = false;  // all its connections have one, and the device may take it
  // What the server told of it, when the session connected or at the last Stats.
  bool up = true;                // its port
  uint32_t mtu_bytes = 0;        // of its port's packets; 0: not known
  uint32_t mbit_per_second = 0;  // of its port; 0: not known
  uint32_t port = 0;  // rails with the same number are of one port of the server; 0: not known
  uint32_t connections = 0;  // of all clients, if `port` is known
};

// The connection to one server. If it is broken, the fields from `device` on are those of the last
// one. If there never was one, they are empty.
struct ServerInfo {
  std::string endpoint;  // as given to Connect
  // The name by which clients find its keys: its own, or its address if it has none.
  std::string name;
  bool connected = false;
  std::string why_not;  // it is not connected
  // The client tried all its addresses and reached none. Operations end at once.
  bool unreachable = false;
  std::string device;  // the local device
  std::string kind;    // "hardware", "kernel-software" or "softverbs"
  // "nic", "rpc-loopback", "rpc-server", or "none" for a client that may only read.
  std::string lock_mode;
  bool authenticated = false;  // client and server proved to each other that they have the key
  bool read_only = false;      // writes and locks are refused (PermissionDenied)
  uint64_t incarnation = 0;
  uint64_t region_bytes = 0;
  uint64_t index_slots = 0;
  uint32_t lock_words = 0;
  uint32_t protocol_version = 0;
  uint32_t session_id = 0;
  uint32_t read_depth = 0;  // RDMA READs in flight per queue pair, as negotiated
  // After this much silence either side takes the other for dead (the server's --silence_ms).
  uint32_t silence_ms = 0;
  // Names the items of the server's group: after a fail-over the new primary has another
  // incarnation, and the same history. 0: the server is in no group.
  uint64_t history = 0;
  // Which primary of its group it is, modulo 4,096: each fail-over adds one. 0: no group.
  uint32_t epoch = 0;
  // Where it is: of a group, the member that is primary.
  std::string address;
  // READs that were done again, because they came when the lease of a group's primary was over. It
  // may have been deposed meanwhile.
  uint64_t reads_disbelieved = 0;
  // GETs that were answered from copies (Options::near_cache_bytes), how many copies there are, and
  // the READs that told whether they may be used. No operation's cost has these READs.
  uint64_t near_cache_answers = 0;
  uint64_t near_cache_items = 0;
  uint64_t near_cache_reads = 0;
  // GETs that had a copy, but it was not sure that the lease goes on.
  uint64_t near_cache_over = 0;
  // Empty: it has one, or the client uses one. One: it has several, and has not told them yet.
  std::vector<RailInfo> rails;
};

// Options of Register and RegisterDmabuf.
struct RegisterOptions {
  // Whether servers may READ the memory. PutFrom needs that, GetInto does not.
  bool remote_read = true;
};

}  // namespace gannet

#endif  // GANNET_TYPES_H_
