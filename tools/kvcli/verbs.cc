#include "tools/kvcli/verbs.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/cluster/group_policy.h"
#include "tools/kvcli/nearest.h"
#include "tools/kvcli/run_verbs.h"

namespace gannet::kvcli {
namespace {

constexpr auto kRows = std::to_array<VerbRow>({
    {{Verb::kPut, "put",
      "KEY VALUE [--file=PATH] [--ttl=TIME] [--flags=N] [--if_absent] [--if_present] "
      "[--if_version=N]",
      "store a value; prints its version", RunPut},
     {.details = R"(
If VALUE is -, the value is read from stdin. With --file, which takes the place of VALUE,
from that file. TIME: 10 or 10s, 500ms, 5m, 2h, 7d.
Exit code 1: the key exists already, does not exist, or has another version.
)",
      .examples = R"(
  put color blue --ttl=1h
  put model --file=weights.bin
)",
      .aliases = "set add:--if_absent setnx:--if_absent replace:--if_present",
      .purpose = "Values"}},
    {{Verb::kGet, "get", "KEY [--meta] [--out=PATH]", "print a value", RunGet},
     {.details = R"(
--meta prints the version, flags, expiry and size instead. --out writes the value into that
file, and prints nothing. Exit code 1: not found, and no file is written.
)",
      .examples = R"(
  get color
  get model --out=weights.bin
)"}},
    {{Verb::kMultiGet, "mget", "KEY...", "print several values, one per line", RunMultiGet},
     {.details = R"(
Prints (nil) for a key that is not found. The exit code is then 1. --json tells this from
a value of these five characters.
)",
      .examples = "  mget color shape"}},
    {{Verb::kExists, "exists", "KEY...", "print how many of the keys are there", RunExists},
     {.details = "No long value is read. With --json, a line for each key. Exit code 1: one is not "
                 "found."}},
    {{Verb::kTtl, "ttl", "KEY", "print how many seconds a key has left (never: it does not expire)",
      RunTtl},
     {.details = "Exit code 1: not found."}},
    {{Verb::kDelete, "del", "KEY... [--if_version=N]", "delete keys", RunDelete},
     {.details = "--if_version is for one key. Exit code 1: one is not found.",
      .aliases = "delete remove rm unlink"}},
    {{Verb::kCompareAndSet, "cas", "KEY VERSION VALUE [--ttl=TIME] [--flags=N]",
      "store a value if the key has this version (0: does not exist); prints the new version",
      RunPut},
     {.details = R"(
If this prompt or script took the key's lock and has lost it, the write is refused.
Exit code 1: the key has another version.
)",
      .examples = "  cas color 0 blue      only if there is no such key"}},
    {{Verb::kMultiPut, "mput", "KEY VALUE... [--ttl=TIME] [--flags=N]",
      "store several values in one call", RunMultiPut},
     {.details = "The words are keys and values in turn. Prints the versions, one per line.",
      .examples = "  mput color blue shape round",
      .aliases = "mset"}},
    {{Verb::kAppend, "append", "KEY VALUE [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
      "add to the end of a value; prints the new version", RunAppend},
     {.details = R"(
If there is no such key, it is made, with --ttl and --flags. Exit code 1: --if_present, and
the key does not exist; or it has another version.
)",
      .examples = "  append log \"one more line\\n\""}},
    {{Verb::kPrepend, "prepend",
      "KEY VALUE [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
      "add to the beginning of a value; prints the new version", RunAppend},
     {.details = "As append.", .examples = "  prepend log \"one more line\\n\""}},
    {{Verb::kIncr, "incr",
      "KEY [NUMBER] [--initial=N] [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
      "add 1, or NUMBER, to a counter; prints the new number", RunCount},
     {.details = R"(
A counter is a decimal number of 64 bits. If there is no such key, it is made, with --ttl and
--flags, and counts from --initial (0). Exit code 1: --if_present, and the key does not
exist; or it has another version. 3: the value is no number, or the new one does not fit.
)",
      .examples = "  incr visits 10 --ttl=1d",
      .aliases = "incrby"}},
    {{Verb::kDecr, "decr",
      "KEY [NUMBER] [--initial=N] [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
      "subtract 1, or NUMBER, from a counter; prints the new number", RunCount},
     {.details = "As incr.", .examples = "  decr seats 2 --if_present", .aliases = "decrby"}},
    {{Verb::kTouch, "touch", "KEY TIME", "give a key a new time to live (0: for ever)", RunTouch},
     {.details = "TIME: 10 or 10s, 500ms, 5m, 2h, 7d. Exit code 1: not found.",
      .examples = "  touch session:7 30m",
      .aliases = "expire"}},
    {{Verb::kGetAndTouch, "gat", "KEY TIME [--meta]",
      "give a key a new time to live (0: for ever), and print its value", RunGetAndTouch},
     {.details = R"(
TIME: 10 or 10s, 500ms, 5m, 2h, 7d. --meta prints the version, flags, expiry and size
instead. Exit code 1: not found.
)",
      .examples = "  gat session:7 30m",
      .aliases = "getex"}},
    {{Verb::kFlush, "flush", "[--yes]", "remove everything from all servers; prints how many items",
      RunFlush},
     {.details = "Asks first, on a terminal. Elsewhere it needs --yes.",
      .aliases = "flushall flushdb flush_all"}},
    {{Verb::kLock, "lock", "KEY [--wait=TIME] [--lease=TIME] -- COMMAND...",
      "hold a lock while a command runs; exits with the command's code", RunLock},
     {.details = R"(
Without COMMAND, at the prompt and in scripts, holds the lock until unlock or the end.
Waits for --deadline_ms, or for --wait (0: one try). Exit code 75: another client holds the
lock, so COMMAND did not run. Without COMMAND this exit code is 1.
Locks are advisory: a plain put ignores them.
--lease: the server breaks the lock after that time, even if COMMAND still runs.
)",
      .examples = "  lock job --lease=10m -- ./nightly-job",
      .purpose = "Locks"}},
    {{Verb::kUnlock, "unlock", "KEY [--force]", "release a lock (at the prompt and in scripts)",
      RunUnlock},
     {.details = R"(
--force breaks the lock, whichever client holds it. It works from the command line too.
Exit code 1: the lock was not held.
)"}},
    {{Verb::kLocks, "locks", "", "show the locks that are held: lock word, holder, lease",
      RunLocks},
     {}},
    {{Verb::kSnapshot, "snapshot", "[--wait=TIME]",
      "have a server with --data write a snapshot, and wait until it is whole", RunSnapshot},
     {.details = R"(
Prints how many items and bytes it has, and where in the journal it was begun. Waits for an
hour, or for --wait. Exit code 3: the server has no --data, or gave the snapshot up.
)",
      .purpose = "The server"}},
    {{Verb::kStats, "stats", "", "show the server's counters", RunStats}, {}},
    {{Verb::kInfo, "info", "", "show the connection, and what the server granted", RunInfo}, {}},
    {{Verb::kPing, "ping", "", "measure one round trip through the server's CPU", RunPing}, {}},
    {{Verb::kClients, "clients", "", "show who is connected, and what they do", RunClients},
     {.details =
          "Hits, misses, READs and latencies are what the clients told with their heartbeats."}},
    {{Verb::kSlowLog, "slowlog", "[--keys]", "show the last requests that took a server long",
      RunSlowLog},
     {.details =
          "The newest first. --keys shows the keys, too. kvserver --slowlog_us says what is long.",
      .examples = "  slowlog --keys"}},
    {{Verb::kScan, "scan", "[GLOB] [--prefix=P] [--match=GLOB] [--limit=N] [--values] [--rate=N]",
      "list the keys, or those that match a pattern", RunScan},
     {.details = R"(
Walks through the server's memory by one-sided READs, so that the server's CPU takes no part:
by load, which takes what others leave, or at most --rate a second (0: no limit). Each key that
is there all the time is shown at least once; a key may be shown twice. GLOB: * ? [a-z]; --match=GLOB is the same. Keys that are no text, or hold
control characters, are shown in quotes, as the prompt reads them.
)",
      .examples = R"(
  scan --prefix=session: --limit=20
  scan --match='user:*:name' --values --rate=1000
)",
      .aliases = "keys list ls",
      .purpose = "What is in its memory"}},
    {{Verb::kBigKeys, "bigkeys", "[--prefix=P] [--match=GLOB] [--count=N] [--rate=N]",
      "list the keys with the longest values", RunBigKeys},
     {.details = "Walks as scan does. --count: how many (10).", .examples = "  bigkeys --count=3"}},
    {{Verb::kHotKeys, "hotkeys", "[--count=N] [--rate=N]", "list the keys that are used most",
      RunHotKeys},
     {.details = R"(
READs, by load or at most --rate times a second (0: no limit), what the server recorded of uses,
then its index, and then the hot items; the server's CPU takes no part. --count: how many (10).
Prints about how often a key was used of late (32+: so often or more), the value's length, the
key, and whether clients may answer from copies of it now (leased: kvserver --item_lease_ms).
Needs kvserver --on_full=evict.
)",
      .examples = "  hotkeys --count=20"}},
    {{Verb::kMemory, "memory", "[--prefix=P] [--match=GLOB] [--rate=N]",
      "show what items take of the memory, by size of block", RunMemory},
     {.details = "Walks as scan does.", .examples = "  memory --prefix=session:"}},
    {{Verb::kWatch, "watch", "KEY [--every=TIME] [--count=N]", "print each change of a value",
      RunWatch},
     {.details = R"(
Looks by one-sided READs, each TIME (100ms), so it may miss changes that come faster. Ends
after --count changes, or with Ctrl-C.
)",
      .examples = "  watch color --every=1s",
      .purpose = "Watch, measure, mend"}},
    {{Verb::kTop, "top", "[--interval=TIME] [--count=N] [--hotkeys=N]",
      "show what the clients do, live: GETs, hits, READs and requests a second", RunTop},
     {.details = R"(
On a terminal, a view of the whole window, drawn anew each TIME (1s); q ends it. Elsewhere
prints a text each TIME, or with --json an object. Ends after --count. Rates are of the last
5 seconds, or of TIME if that is longer. GETs, hits, READs and latencies are what the clients
told with their heartbeats. Exit code 3: a server did not answer at the end.
--hotkeys: also the N keys of each server that are used most, as hotkeys finds them, about
once a second, over a connection that is among the clients then.
)",
      .examples = R"(
  top
  top --interval=10s --count=6
  top --hotkeys=5
)",
      .aliases = "monitor"}},
    {{Verb::kLatency, "latency", "[--count=N]",
      "measure GET, PUT and PING, and where the time goes", RunLatency},
     {.details = R"(
Each is done N times (1000, at most 1000000), on a key of its own that is deleted at the end.
The last lines say what the device, the lookup, the item, the server's CPU and the store take
of it.
)",
      .examples = "  latency --count=10000"}},
    {{Verb::kDoctor, "doctor", "",
      "find out what is wrong with this machine or the way to the server", nullptr},
     {.details = R"(
Looks at devices, ports, GIDs, packet size, locked memory, huge pages and cores, and goes to
each --server: by which GID, whether anybody listens there or something is in the way, and
how far its clock is from this machine's. Each finding has the command that mends it. Works
from the command line only.
Exit code 1: warnings. 3: errors.
)",
      .alone = RunDoctor}},
    {{Verb::kCluster, "cluster", "ACTION",
      "make a cluster of groups of servers, show it, and change it", RunClusterAction},
     {.details = R"(
All need --etcd=URL[,URL...] and --cluster=NAME, or $GANNET_ETCD and $GANNET_CLUSTER. No
--server.
@actionsThe servers move partitions; balance, move and drain show a plan, and wait (for
ever, or --wait). Ctrl-C ends the waiting only, and the same again goes on with it. --stop
gives up what has not moved yet. --dry-run shows the plan. balance and drain READ through
the servers' memory to measure partitions, unless --by_partitions.
Exit code 1: it cannot be done now, or is there already. 3: etcd gives no answer.
)",
      .examples = R"(
  cluster init --etcd=http://127.0.0.1:2379 --cluster=c --group=g1:n1,n2,n3
  cluster status --etcd=http://127.0.0.1:2379 --cluster=c
  cluster handover g1 n2 --etcd=http://127.0.0.1:2379 --cluster=c
)",
      .alone = RunClusterAlone,
      .purpose = "Clusters, versions and keys"}},
    {{Verb::kCluster, "init",
      "--group=GROUP:NODES @terms [--ring_bytes=N] [--if_missing] [--abandon=NODE] @etcd",
      R"(
make a cluster; --group may be given again. --lease_ms (600): of
the primary; --min_copies (1): with fewer members in sync, no
write is taken; --ring_bytes (16777216): of each backup's
ring; --on_full (reject), --sync and the other flags of
kvserver above: for all members, whatever they are started with;
--if_missing: change nothing if etcd has the cluster. Waits 3s,
or --wait, for members that live although etcd has lost the
cluster, and takes over what they have. --abandon=N: but for
what N had, which is gone
)",
      RunClusterAction},
     {.action = ClusterCommand::Action::kInit}},
    {{Verb::kCluster, "status", "[--check] @etcd",
      R"(
show groups and members, which are asked what they are.
--check: exit code 1 if members are missing, 3 if a group is
not served, or if nobody can be asked
)",
      RunClusterAction},
     {.action = ClusterCommand::Action::kStatus}},
    {{Verb::kCluster, "handover", "GROUP NODE @etcd",
      R"(
have the primary hand over to NODE, and wait for it (10s, or
--wait)
)",
      RunClusterAction},
     {.action = ClusterCommand::Action::kHandOver}},
    {{Verb::kCluster, "add", "GROUP NODE @etcd", "let NODE be a member", RunClusterAction},
     {.action = ClusterCommand::Action::kAdd}},
    {{Verb::kCluster, "remove", "GROUP NODE @etcd", "let NODE be none any more; not the primary",
      RunClusterAction},
     {.action = ClusterCommand::Action::kRemove}},
    {{Verb::kCluster, "force", "GROUP --from=NODE --lose-data [--even-if-worse] @etcd",
      R"(
make NODE primary, although members in sync are lost;
--even-if-worse: although another copy is better
)",
      RunClusterAction},
     {.action = ClusterCommand::Action::kForce}},
    {{Verb::kCluster, "set", "GROUP [NAME=VALUE]... @terms @etcd",
      R"(
change what init has set: min_copies, lease_ms, on_full, sync
and the others
)",
      RunClusterAction},
     {.action = ClusterCommand::Action::kSet}},
    {{Verb::kCluster, "add-group", "GROUP:NODES @terms [--ring_bytes=N] @etcd",
      "make a group without partitions; terms as for init", RunClusterAction},
     {.action = ClusterCommand::Action::kAddGroup}},
    {{Verb::kCluster, "remove-group", "GROUP @etcd", "remove a group without partitions",
      RunClusterAction},
     {.action = ClusterCommand::Action::kRemoveGroup}},
    {{Verb::kCluster, "move", "PARTITION... [--to=GROUP] [--dry-run] [--stop] @etcd",
      "move these partitions to the group --to: 7, or 0-63", RunClusterAction},
     {.action = ClusterCommand::Action::kMove}},
    {{Verb::kCluster, "drain", "GROUP [--dry-run] [--stop] [--by_partitions] @etcd",
      "move all partitions of GROUP to the others", RunClusterAction},
     {.action = ClusterCommand::Action::kDrain}},
    {{Verb::kCluster, "balance", "[--dry-run] [--stop] [--by_partitions] @etcd",
      "move partitions, so that groups have the same bytes within 5 %", RunClusterAction},
     {.action = ClusterCommand::Action::kBalance}},
    {{Verb::kCluster, "moves", "[PARTITION]... [--stop] @etcd", "show which partitions move",
      RunClusterAction},
     {.action = ClusterCommand::Action::kMoves}},
    {{Verb::kDiscover, "discover", "[--announce=ADDRESS] [--wait=TIME] [--count=N]",
      "find servers that announce themselves on the network", nullptr},
     {.details = R"(
Listens for 3s, or --wait, to the multicast address that servers have for --announce
(239.71.71.71), or until it has heard --count servers. Prints which there are and what to
give to --server. Anybody on the network may announce anything: servers prove themselves
by keys only when a client connects. Works from the command line only. Exit code 1: none
was heard.
)",
      .examples = "  discover --wait=10s",
      .alone = RunDiscover}},
    {{Verb::kUpgradeCheck, "upgrade-check", "PATH [--kvserver=PROGRAM]",
      "say whether another version of kvserver can take over what a server keeps", nullptr},
     {.details = R"(
PATH is a --memory_file or a directory of --data; the server may go on using it. The answer
is that of the new version's program: kvserver, found along PATH, or --kvserver. Works from
the command line only. Exit code 1: it cannot, or there is nothing. 126, 127: there is no
such program.
)",
      .examples = "  upgrade-check /dev/shm/gannet --kvserver=/opt/new/bin/kvserver",
      .alone = RunUpgradeCheck}},
    {{Verb::kGenKey, "genkey", "[--id=N] [--read] [--replica]",
      "print a new line for a file of keys (--auth_file), with a random key", RunGenKey},
     {.details = R"(
The key has 32 random bytes. --id names it (1 to 4294967295); without it, the id is random,
too. With --read, who has the key may only read. Needs no server. Nobody but its owner may have
rights to the file: umask 077.
)",
      .examples = "  genkey --id=7 --read",
      .alone = RunGenKeyAlone}},
    {{Verb::kHelp, "help", "[COMMAND]", "show this text, or a command's help", RunHelp},
     {.purpose = "Else"}},
    {{Verb::kQuit, "quit", "", "leave the prompt", RunQuit}, {.aliases = "exit"}},
});

constexpr size_t kAnyNumber = 1'000'000;

// Returns whole lines. A text of several lines begins behind a line break.
std::string TextOf(std::string_view raw) {
  if (raw.starts_with('\n')) return std::string(raw.substr(1));
  return raw.empty() ? "" : absl::StrCat(std::string(raw), "\n");
}

std::string Expanded(std::string_view usage) {
  std::string terms = "[--lease_ms=N] [--min_copies=N]";
  for (const PolicySetting& setting : PolicySettings()) {
    absl::StrAppend(&terms, " [--", setting.name, "=", setting.Usage(), "]");
  }
  return absl::StrReplaceAll(std::string(usage),
                             {{"@terms", terms},
                              {"@etcd",
                               "[--etcd=URL] [--cluster=NAME] [--wait=TIME] [--etcd_ca_file=FILE] "
                               "[--etcd_cert_file=FILE] [--etcd_key_file=FILE] [--etcd_user=NAME] "
                               "[--etcd_password_file=FILE]"}});
}

Usage TakeApart(std::string text) {
  Usage usage{.text = std::move(text)};
  const std::vector<std::string> tokens = absl::StrSplit(usage.text, ' ', absl::SkipEmpty());
  for (const std::string& token : tokens) {
    if (token == "--") break;
    const bool must = !token.starts_with('[');
    const std::string_view bare =
        must ? token : std::string_view(token).substr(1, token.size() - 2);
    if (bare.starts_with("--")) {
      const size_t equals = std::min(bare.find('='), bare.size());
      usage.options.push_back({std::string(bare.substr(2, equals - 2)),
                               std::string(bare.substr(std::min(equals + 1, bare.size()))), must});
      continue;
    }
    usage.places.push_back(token);
    if (must) ++usage.words_min;
    usage.words_max = token.ends_with("...") ? kAnyNumber : usage.words_max + 1;
  }
  return usage;
}

// "ACTION [WORD]...", and the options that any action has.
Usage UsageOfCluster(std::span<const Usage> actions) {
  std::string text = "ACTION [WORD]...";
  std::set<std::string> told;
  for (const Usage& usage : actions) {
    for (const UsageOption& option : usage.options) {
      if (told.insert(option.name).second) absl::StrAppend(&text, " [", option.Text(), "]");
    }
  }
  return TakeApart(text);
}

std::vector<Usage> AllUsages() {
  std::vector<Usage> all;
  std::vector<Usage> actions;
  for (const VerbRow& row : kRows) {
    all.push_back(TakeApart(Expanded(row.usage)));
    if (row.action) actions.push_back(all.back());
  }
  all[static_cast<size_t>(&RowOf(Verb::kCluster) - kRows.data())] = UsageOfCluster(actions);
  return all;
}

struct Alias {
  std::string name;
  std::vector<std::string> words;  // the verb; an option may follow
};

std::vector<Alias> Aliases() {
  std::vector<Alias> aliases;
  for (const VerbRow& row : kRows) {
    for (const std::string& alias :
         std::vector<std::string>(absl::StrSplit(row.aliases, ' ', absl::SkipEmpty()))) {
      const std::pair<std::string, std::string> parts = absl::StrSplit(alias, ':');
      aliases.push_back({parts.first, {row.name}});
      if (!parts.second.empty()) aliases.back().words.emplace_back(parts.second);
    }
  }
  return aliases;
}

// "set is put, add is put --if_absent, ...", in lines that fit a terminal.
std::string AliasText() {
  constexpr size_t kColumns = 90;
  std::string text;
  size_t column = 41;  // behind what comes before it
  for (const Alias& alias : Aliases()) {
    const std::string one = absl::StrCat(alias.name, " is ", absl::StrJoin(alias.words, " "));
    if (!text.empty()) text += ",";
    if (column + one.size() > kColumns) {
      text += "\n";
      column = 0;
    }
    absl::StrAppend(&text, column == 0 ? "" : " ", one);
    column += one.size() + 2;
  }
  return text + ".\n";
}

// "  add GROUP NODE            let NODE be a member": the words that an action must have.
std::string ActionText(const VerbRow& row) {
  constexpr size_t kColumns = 28;
  std::string head = absl::StrCat("  ", row.name);
  for (const std::string& place : UsageOf(row).places) absl::StrAppend(&head, " ", place);
  for (const UsageOption& option : UsageOf(row).options) {
    if (option.must) absl::StrAppend(&head, " ", option.Text());
  }
  const std::string indent(kColumns, ' ');
  head += head.size() < kColumns ? std::string(kColumns - head.size(), ' ') : "\n" + indent;
  const std::string text(absl::StripSuffix(TextOf(row.summary), "\n"));
  return absl::StrCat(head, absl::StrReplaceAll(text, {{"\n", "\n" + indent}}), "\n");
}

}  // namespace

std::span<const VerbRow> VerbRows() { return kRows; }

const VerbRow& RowOf(Verb verb) { return *std::ranges::find(kRows, verb, &VerbRow::verb); }

const VerbRow* FindAction(std::string_view name) {
  const auto row = std::ranges::find_if(
      kRows, [name](const VerbRow& it) { return it.action.has_value() && it.name == name; });
  return row == kRows.end() ? nullptr : &*row;
}

NamedRow FindRow(std::span<const std::string> line) {
  const auto verb = FindVerb(line[0]);
  if (!verb) return {};
  if (*verb == Verb::kCluster && line.size() > 1) {
    if (const VerbRow* const action = FindAction(line[1])) return {action, 2};
  }
  return {&RowOf(*verb), 1};
}

std::string UsageOption::Text() const {
  return absl::StrCat("--", name, value.empty() ? "" : "=", value);
}

const UsageOption* Usage::FindOption(std::string_view name) const {
  const auto found = std::ranges::find(options, name, &UsageOption::name);
  return found == options.end() ? nullptr : &*found;
}

std::string_view Usage::PlaceAt(size_t n) const {
  if (places.empty() || n >= words_max) return "";
  const bool last_repeats = places.back().starts_with('[');
  std::string_view place =
      places[last_repeats ? std::min(n, places.size() - 1) : n % places.size()];
  if (place.ends_with("...")) place.remove_suffix(3);
  return place.starts_with('[') ? place.substr(1, place.size() - 2) : place;
}

const Usage& UsageOf(const VerbRow& row) {
  // Never deleted: used until the program ends.
  static const std::vector<Usage>* const all = new std::vector<Usage>(AllUsages());
  return (*all)[static_cast<size_t>(&row - kRows.data())];
}

std::string FullName(const VerbRow& row) {
  return absl::StrCat(row.action ? "cluster " : "", row.name);
}

absl::Status UsageError(const VerbRow& row, std::string_view problem) {
  const std::string& usage = UsageOf(row).text;
  std::string text = absl::StrCat(FullName(row), ": ", std::string(problem),
                                  "\nusage: ", FullName(row), usage.empty() ? "" : " ", usage);
  if (row.verb == Verb::kCluster && !row.action) {
    absl::StrAppend(&text, "\nACTION is one of ", absl::StrJoin(ActionNames(), ", "));
  }
  return absl::InvalidArgumentError(text);
}

std::optional<std::vector<std::string>> WordsOfName(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(std::string(name));
  for (const Alias& alias : Aliases()) {
    if (lower == alias.name) return alias.words;
  }
  for (const VerbRow& row : kRows) {
    if (lower == row.name && !row.action) return std::vector<std::string>{lower};
  }
  return std::nullopt;
}

std::optional<Verb> FindVerb(std::string_view name) {
  const auto words = WordsOfName(name);
  if (!words) return std::nullopt;
  for (const VerbRow& row : kRows) {
    if (words->front() == row.name && !row.action) return row.verb;
  }
  return std::nullopt;
}

std::string NoCommand(std::string_view name) {
  std::vector<std::string> known = VerbNames();
  for (const Alias& alias : Aliases()) known.emplace_back(alias.name);
  const std::string nearest = Nearest(absl::AsciiStrToLower(std::string(name)), known);
  return absl::StrCat(
      "no command '", std::string(name), "'",
      nearest.empty() ? "; try help" : absl::StrCat("; did you mean ", nearest, "?"));
}

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const VerbRow& row : kRows) {
    if (!row.action) names.emplace_back(row.name);
  }
  return names;
}

std::vector<std::string> ActionNames() {
  std::vector<std::string> names;
  for (const VerbRow& row : kRows) {
    if (row.action) names.emplace_back(row.name);
  }
  return names;
}

std::string HelpText() {
  std::string text;
  for (const VerbRow& row : kRows) {
    if (row.action) continue;
    if (*row.purpose) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", row.purpose, ":\n");
    }
    absl::StrAppendFormat(&text, "  %-13s %s\n", row.name, row.summary);
  }
  return text;
}

absl::StatusOr<std::string> HelpText(std::string_view topic) {
  if (topic.empty()) {
    return absl::StrCat(HelpText(),
                        "\nhelp COMMAND shows what a command takes. Commands may be typed in upper "
                        "case, and by\nnames of Redis, memcached and the shell:",
                        AliasText());
  }
  const auto verb = FindVerb(topic);
  if (!verb) return absl::NotFoundError(NoCommand(topic));
  const VerbRow& row = RowOf(*verb);
  const std::string& usage = UsageOf(row).text;
  std::string actions;
  for (const VerbRow& it : kRows) {
    if (it.action) actions += ActionText(it);
  }
  const std::string examples = TextOf(row.examples);
  const bool several = examples.find('\n') + 1 < examples.size();
  return absl::StrCat(row.name, usage.empty() ? "" : " ", usage, "\n", row.summary, "\n",
                      absl::StrReplaceAll(TextOf(row.details), {{"@actions", actions}}),
                      examples.empty() ? ""
                      : several        ? "Examples:\n"
                                       : "Example:\n",
                      examples);
}

}  // namespace gannet::kvcli
