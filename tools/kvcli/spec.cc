#include "tools/kvcli/spec.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/kvcli/cluster_command.h"
#include "tools/kvcli/examples.h"
#include "tools/kvcli/nearest.h"

namespace gannet::kvcli {
namespace {

constexpr std::array<Spec, 38> kSpecs = {{
    {Verb::kPut, "put",
     "KEY VALUE [--file=PATH] [--ttl=TIME] [--flags=N] [--if_absent] [--if_present] "
     "[--if_version=N]",
     "store a value; prints its version",
     "If VALUE is -, the value is read from stdin. With --file, which takes the place of VALUE,\n"
     "from that file. TIME: 10 or 10s, 500ms, 5m, 2h, 7d.\n"
     "Exit code 1: the key exists already, does not exist, or has another version.\n"},
    {Verb::kGet, "get", "KEY [--meta] [--out=PATH]", "print a value",
     "--meta prints the version, flags, expiry and size instead. --out writes the value into that\n"
     "file, and prints nothing. Exit code 1: not found, and no file is written.\n"},
    {Verb::kMultiGet, "mget", "KEY...", "print several values, one per line",
     "Prints (nil) for a key that is not found. The exit code is then 1. --json tells this from\n"
     "a value of these five characters.\n"},
    {Verb::kExists, "exists", "KEY...", "print how many of the keys are there",
     "No long value is read. With --json, a line for each key. Exit code 1: one is not found.\n"},
    {Verb::kTtl, "ttl", "KEY", "print how many seconds a key has left (never: it does not expire)",
     "Exit code 1: not found.\n"},
    {Verb::kDelete, "del", "KEY... [--if_version=N]", "delete keys",
     "--if_version is for one key. Exit code 1: one is not found.\n"},
    {Verb::kCompareAndSet, "cas", "KEY VERSION VALUE [--ttl=TIME] [--flags=N]",
     "store a value if the key has this version (0: does not exist); prints the new version",
     "If this prompt or script took the key's lock and has lost it, the write is refused.\n"
     "Exit code 1: the key has another version.\n"},
    {Verb::kMultiPut, "mput", "KEY VALUE... [--ttl=TIME] [--flags=N]",
     "store several values in one call",
     "The words are keys and values in turn. Prints the versions, one per line.\n"},
    {Verb::kAppend, "append", "KEY VALUE [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
     "add to the end of a value; prints the new version",
     "If there is no such key, it is made, with --ttl and --flags. Exit code 1: --if_present, and\n"
     "the key does not exist; or it has another version.\n"},
    {Verb::kPrepend, "prepend",
     "KEY VALUE [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
     "add to the beginning of a value; prints the new version", "As append.\n"},
    {Verb::kIncr, "incr",
     "KEY [NUMBER] [--initial=N] [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
     "add 1, or NUMBER, to a counter; prints the new number",
     "A counter is a decimal number of 64 bits. If there is no such key, it is made, with --ttl "
     "and\n"
     "--flags, and counts from --initial (0). Exit code 1: --if_present, and the key does not\n"
     "exist; or it has another version. 3: the value is no number, or the new one does not fit.\n"},
    {Verb::kDecr, "decr",
     "KEY [NUMBER] [--initial=N] [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
     "subtract 1, or NUMBER, from a counter; prints the new number", "As incr.\n"},
    {Verb::kTouch, "touch", "KEY TIME", "give a key a new time to live (0: for ever)",
     "TIME: 10 or 10s, 500ms, 5m, 2h, 7d. Exit code 1: not found.\n"},
    {Verb::kGetAndTouch, "gat", "KEY TIME [--meta]",
     "give a key a new time to live (0: for ever), and print its value",
     "TIME: 10 or 10s, 500ms, 5m, 2h, 7d. --meta prints the version, flags, expiry and size\n"
     "instead. Exit code 1: not found.\n"},
    {Verb::kFlush, "flush", "[--yes]", "remove everything from all servers; prints how many items",
     "Asks first, on a terminal. Elsewhere it needs --yes.\n"},
    {Verb::kLock, "lock", "KEY [--wait=TIME] [--lease=TIME] -- COMMAND...",
     "hold a lock while a command runs; exits with the command's code",
     "Without COMMAND, at the prompt and in scripts, holds the lock until unlock or the end.\n"
     "Waits for --deadline_ms, or for --wait (0: one try). Exit code 75: another client holds the\n"
     "lock, so COMMAND did not run. Without COMMAND this exit code is 1.\n"
     "Locks are advisory: a plain put ignores them.\n"
     "--lease: the server breaks the lock after that time, even if COMMAND still runs.\n"},
    {Verb::kUnlock, "unlock", "KEY [--force]", "release a lock (at the prompt and in scripts)",
     "--force breaks the lock, whichever client holds it. It works from the command line too.\n"
     "Exit code 1: the lock was not held.\n"},
    {Verb::kLocks, "locks", "", "show the locks that are held: lock word, holder, lease", ""},
    {Verb::kSnapshot, "snapshot", "[--wait=TIME]",
     "have a server with --data write a snapshot, and wait until it is whole",
     "Prints how many items and bytes it has, and where in the journal it was begun. Waits for an\n"
     "hour, or for --wait. Exit code 3: the server has no --data, or gave the snapshot up.\n"},
    {Verb::kStats, "stats", "", "show the server's counters", ""},
    {Verb::kInfo, "info", "", "show the connection, and what the server granted", ""},
    {Verb::kPing, "ping", "", "measure one round trip through the server's CPU", ""},
    {Verb::kClients, "clients", "", "show who is connected, and what they do",
     "Hits, misses, READs and latencies are what the clients told with their heartbeats.\n"},
    {Verb::kSlowLog, "slowlog", "[--keys]", "show the last requests that took a server long",
     "The newest first. --keys shows the keys, too. kvserver --slowlog_us says what is long.\n"},
    {Verb::kScan, "scan", "[GLOB] [--prefix=P] [--match=GLOB] [--limit=N] [--values] [--rate=N]",
     "list the keys, or those that match a pattern",
     "Walks through the server's memory by one-sided READs, so that the server's CPU takes no "
     "part:\n"
     "by load, which takes what others leave, or at most --rate a second (0: no limit). Each key "
     "that\n"
     "is there all the time is shown at least once; a key may be shown twice. GLOB: * ? [a-z]; "
     "--match=GLOB is the same. Keys "
     "that are no text, or hold\n"
     "control characters, are shown in quotes, as the prompt reads them.\n"},
    {Verb::kBigKeys, "bigkeys", "[--prefix=P] [--match=GLOB] [--count=N] [--rate=N]",
     "list the keys with the longest values", "Walks as scan does. --count: how many (10).\n"},
    {Verb::kHotKeys, "hotkeys", "[--count=N] [--rate=N]", "list the keys that are used most",
     "READs, by load or at most --rate times a second (0: no limit), what the server recorded of "
     "uses,\n"
     "then its index, and then the hot items; the server's CPU takes no part. --count: how many "
     "(10).\n"
     "Prints about how often a key was used of late (32+: so often or more), the value's length, "
     "and\n"
     "the key. Needs kvserver --on_full=evict.\n"},
    {Verb::kMemory, "memory", "[--prefix=P] [--match=GLOB] [--rate=N]",
     "show what items take of the memory, by size of block", "Walks as scan does.\n"},
    {Verb::kWatch, "watch", "KEY [--every=TIME] [--count=N]", "print each change of a value",
     "Looks by one-sided READs, each TIME (100ms), so it may miss changes that come faster. Ends\n"
     "after --count changes, or with Ctrl-C.\n"},
    {Verb::kTop, "top", "[--interval=TIME] [--count=N] [--hotkeys=N]",
     "show what the clients do, live: GETs, hits, READs and requests a second",
     "On a terminal, a view of the whole window, drawn anew each TIME (1s); q ends it. Elsewhere\n"
     "prints a text each TIME, or with --json an object. Ends after --count. Rates are of the "
     "last\n"
     "5 seconds, or of TIME if that is longer. GETs, hits, READs and latencies are what the "
     "clients\n"
     "told with their heartbeats. Exit code 3: a server did not answer at the end.\n"
     "--hotkeys: also the N keys of each server that are used most, as hotkeys finds them, about\n"
     "once a second, over a connection that is among the clients then.\n"},
    {Verb::kLatency, "latency", "[--count=N]", "measure GET, PUT and PING, and where the time goes",
     "Each is done N times (1000, at most 1000000), on a key of its own that is deleted at the "
     "end.\n"
     "The last lines say what the device, the lookup, the item, the server's CPU and the store "
     "take\n"
     "of it.\n"},
    {Verb::kDoctor, "doctor", "",
     "find out what is wrong with this machine or the way to the server",
     "Looks at devices, ports, GIDs, packet size, locked memory, huge pages and cores, and goes "
     "to\n"
     "each --server: by which GID, whether anybody listens there or something is in the way, and\n"
     "how far its clock is from this machine's. Each finding has the command that mends it. Works\n"
     "from the command line only.\n"
     "Exit code 1: warnings. 3: errors.\n"},
    {Verb::kCluster, "cluster",
     "ACTION [WORD]... [--etcd=URL] [--cluster=NAME] [--group=GROUP:NODES] [--lease_ms=N] "
     "[--min_copies=N] [--ring_bytes=N] [--on_full=reject|evict] [--sync=always|interval|none] "
     "[--sync_interval_ms=N] [--session_grace_ms=N] [--silence_ms=N] [--index_slots=N] "
     "[--index_grows=true|false] [--lock_words=N] [--if_missing] [--abandon=NODE] "
     "[--check] [--from=NODE] [--lose-data] [--even-if-worse] [--to=GROUP] "
     "[--dry-run] [--stop] [--by_partitions] [--wait=TIME] "
     "[--etcd_ca_file=FILE] [--etcd_cert_file=FILE] [--etcd_key_file=FILE] [--etcd_user=NAME] "
     "[--etcd_password_file=FILE]",
     "make a cluster of groups of servers, show it, and change it",
     "All need --etcd=URL[,URL...] and --cluster=NAME, or $GANNET_ETCD and $GANNET_CLUSTER. No\n"
     "--server.\n"
     "  init --group=G:N1,N2,...  make a cluster; --group may be given again. --lease_ms (600): "
     "of\n"
     "                            the primary; --min_copies (1): with fewer members in sync, no\n"
     "                            write is taken; --ring_bytes (16777216): of each backup's\n"
     "                            ring; --on_full (reject), --sync and the other flags of\n"
     "                            kvserver above: for all members, whatever they are started "
     "with;\n"
     "                            --if_missing: change nothing if etcd has the cluster. Waits 3s,\n"
     "                            or --wait, for members that live although etcd has lost the\n"
     "                            cluster, and takes over what they have. --abandon=N: but for\n"
     "                            what N had, which is gone\n"
     "  status                    show groups and members, which are asked what they are.\n"
     "                            --check: exit code 1 if members are missing, 3 if a group is\n"
     "                            not served, or if nobody can be asked\n"
     "  handover G N              have the primary hand over to N, and wait for it (10s, or "
     "--wait)\n"
     "  add G N                   let N be a member\n"
     "  remove G N                let N be none any more; not the primary\n"
     "  force G --from=N --lose-data\n"
     "                            make N primary, although members in sync are lost;\n"
     "                            --even-if-worse: although another copy is better\n"
     "  set G NAME=VALUE...       change what init has set: min_copies, lease_ms, on_full, sync\n"
     "                            and the others\n"
     "  add-group G:N1,N2,...     make a group without partitions; terms as for init\n"
     "  balance                   move partitions, so that groups have the same bytes within 5 %\n"
     "  move P... --to=G          move these partitions: 7, or 0-63\n"
     "  drain G                   move all partitions of G to the others\n"
     "  moves [P...]              show which partitions move\n"
     "  remove-group G            of a group without partitions\n"
     "The servers move partitions; balance, move and drain show a plan, and wait (for\n"
     "ever, or --wait). Ctrl-C ends the waiting only, and the same again goes on with it. --stop\n"
     "gives up what has not moved yet. --dry-run shows the plan. balance and drain READ through\n"
     "the servers' memory to measure partitions, unless --by_partitions.\n"
     "Exit code 1: it cannot be done now, or is there already. 3: etcd gives no answer.\n"},
    {Verb::kDiscover, "discover", "[--announce=ADDRESS] [--wait=TIME] [--count=N]",
     "find servers that announce themselves on the network",
     "Listens for 3s, or --wait, to the multicast address that servers have for --announce\n"
     "(239.71.71.71), or until it has heard --count servers. Prints which there are and what to\n"
     "give to --server. Anybody on the network may announce anything: servers prove themselves\n"
     "by keys only when a client connects. Works from the command line only. Exit code 1: none\n"
     "was heard.\n"},
    {Verb::kUpgradeCheck, "upgrade-check", "PATH [--kvserver=PROGRAM]",
     "say whether another version of kvserver can take over what a server keeps",
     "PATH is a --memory_file or a directory of --data; the server may go on using it. The answer\n"
     "is that of the new version's program: kvserver, found along PATH, or --kvserver. Works from\n"
     "the command line only. Exit code 1: it cannot, or there is nothing. 126, 127: there is no\n"
     "such program.\n"},
    {Verb::kGenKey, "genkey", "[--id=N] [--read] [--replica]",
     "print a new line for a file of keys (--auth_file), with a random key",
     "The key has 32 random bytes. --id names it (1 to 4294967295); without it, the id is random,\n"
     "too. With --read, who has the key may only read. Needs no server. Nobody but its owner may "
     "have\n"
     "rights to the file: umask 077.\n"},
    {Verb::kHelp, "help", "[COMMAND]", "show this text, or a command's help", ""},
    {Verb::kQuit, "quit", "", "leave the prompt", ""},
}};
static_assert(std::ranges::all_of(kSpecs, [i = 0](const Spec& spec) mutable {
  return static_cast<int>(spec.verb) == i++;
}));

// What commands are for, as help groups them: those from `first` to the next group's first.
struct Purpose {
  Verb first;
  const char* title;
};
constexpr std::array<Purpose, 7> kPurposes = {{
    {Verb::kPut, "Values"},
    {Verb::kLock, "Locks"},
    {Verb::kSnapshot, "The server"},
    {Verb::kScan, "What is in its memory"},
    {Verb::kWatch, "Watch, measure, mend"},
    {Verb::kCluster, "Clusters, versions and keys"},
    {Verb::kHelp, "Else"},
}};

// What users of Redis, memcached and the shell type. The first word is the verb; an option may
// follow.
struct Alias {
  const char* name;
  const char* words;
};
constexpr std::array<Alias, 21> kAliases = {{
    {"set", "put"},
    {"add", "put --if_absent"},
    {"setnx", "put --if_absent"},
    {"replace", "put --if_present"},
    {"delete", "del"},
    {"remove", "del"},
    {"rm", "del"},
    {"unlink", "del"},
    {"mset", "mput"},
    {"incrby", "incr"},
    {"decrby", "decr"},
    {"expire", "touch"},
    {"getex", "gat"},
    {"keys", "scan"},
    {"list", "scan"},
    {"ls", "scan"},
    {"flushall", "flush"},
    {"flushdb", "flush"},
    {"flush_all", "flush"},
    {"monitor", "top"},
    {"exit", "quit"},
}};

// "set is put, add is put --if_absent, ...", in lines that fit a terminal.
std::string AliasText() {
  constexpr size_t kColumns = 90;
  std::string text;
  size_t column = 41;  // behind what comes before it
  for (const Alias& alias : kAliases) {
    const std::string one = absl::StrCat(alias.name, " is ", alias.words);
    if (column + one.size() > kColumns) {
      text += "\n";
      column = 0;
    }
    absl::StrAppend(&text, column == 0 ? "" : " ", one, &alias == &kAliases.back() ? ".\n" : ",");
    column += one.size() + 2;
  }
  return text;
}

Usage TakeApart(std::string_view text) {
  constexpr size_t kAnyNumber = 1'000'000;
  Usage usage;
  for (const std::string& token :
       std::vector<std::string>(absl::StrSplit(std::string(text), ' ', absl::SkipEmpty()))) {
    if (token == "--") break;
    if (token.starts_with("[--")) {
      const std::string option = token.substr(3, token.size() - 4);
      const size_t equals = option.find('=');
      usage.options.push_back({option.substr(0, equals), equals != std::string::npos});
      continue;
    }
    usage.places.push_back(token);
    if (!token.starts_with('[')) ++usage.words_min;
    usage.words_max = token.ends_with("...") ? kAnyNumber : usage.words_max + 1;
  }
  return usage;
}

}  // namespace

const Spec& SpecOf(Verb verb) { return kSpecs[static_cast<size_t>(verb)]; }

absl::Status UsageError(const Spec& spec, std::string_view problem) {
  std::string text = absl::StrCat(spec.name, ": ", std::string(problem), "\nusage: ", spec.name,
                                  *spec.usage ? " " : "", spec.usage);
  if (spec.verb == Verb::kCluster) {
    absl::StrAppend(&text, "\nACTION is one of ", absl::StrJoin(ClusterActions(), ", "));
  }
  return absl::InvalidArgumentError(text);
}

const Usage& UsagePartsOf(Verb verb) {
  static const std::vector<Usage>* const all = [] {
    auto* parts = new std::vector<Usage>();  // never deleted: used until the program ends
    for (const Spec& spec : kSpecs) parts->push_back(TakeApart(spec.usage));
    return parts;
  }();
  return (*all)[static_cast<size_t>(verb)];
}

const UsageOption* FindOption(Verb verb, std::string_view name) {
  const std::vector<UsageOption>& options = UsagePartsOf(verb).options;
  const auto found = std::ranges::find(options, name, &UsageOption::name);
  return found == options.end() ? nullptr : &*found;
}

std::optional<std::vector<std::string>> WordsOfName(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(std::string(name));
  for (const Alias& alias : kAliases) {
    if (lower == alias.name) return absl::StrSplit(alias.words, ' ');
  }
  for (const Spec& spec : kSpecs) {
    if (lower == spec.name) return std::vector<std::string>{lower};
  }
  return std::nullopt;
}

std::optional<Verb> FindVerb(std::string_view name) {
  const auto words = WordsOfName(name);
  if (!words) return std::nullopt;
  return std::ranges::find(kSpecs, words->front(), &Spec::name)->verb;
}

std::string NoCommand(std::string_view name) {
  std::vector<std::string> known = VerbNames();
  for (const Alias& alias : kAliases) known.emplace_back(alias.name);
  const std::string nearest = Nearest(absl::AsciiStrToLower(std::string(name)), known);
  return absl::StrCat(
      "no command '", std::string(name), "'",
      nearest.empty() ? "; try help" : absl::StrCat("; did you mean ", nearest, "?"));
}

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const Spec& spec : kSpecs) names.emplace_back(spec.name);
  return names;
}

std::string_view UsageOf(Verb verb) { return SpecOf(verb).usage; }

std::string HelpText() {
  std::string text;
  for (const Spec& spec : kSpecs) {
    const auto purpose = std::ranges::find(kPurposes, spec.verb, &Purpose::first);
    if (purpose != kPurposes.end()) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", purpose->title, ":\n");
    }
    absl::StrAppendFormat(&text, "  %-13s %s\n", spec.name, spec.summary);
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
  const Spec& spec = SpecOf(*verb);
  return absl::StrCat(spec.name, *spec.usage ? " " : "", spec.usage, "\n", spec.summary, "\n",
                      spec.details, ExamplesOf(*verb));
}

}  // namespace gannet::kvcli
