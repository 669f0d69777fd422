#include "tools/kvcli/command.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "tools/kvcli/command_options.h"
#include "tools/kvcli/examples.h"

namespace gannet::kvcli {
namespace {

constexpr size_t kAnyNumber = 1'000'000;

struct Spec {
  Verb verb;
  const char* name;
  const char* usage;    // the words after the name
  const char* summary;  // one line
  const char* details;  // further lines of the command's help; may be empty
  size_t words_min;     // without options, and without the words behind --
  size_t words_max;
  const char* options;  // the names of its options, each between blanks
};

constexpr std::array<Spec, 32> kSpecs = {{
    {Verb::kPut, "put",
     "KEY VALUE [--file=PATH] [--ttl=TIME] [--flags=N] [--if_absent] [--if_present] "
     "[--if_version=N]",
     "store a value; prints its version",
     "If VALUE is -, the value is read from stdin. With --file, which takes the place of VALUE,\n"
     "from that file. TIME: 10 or 10s, 500ms, 5m, 2h, 7d.\n"
     "Exit code 1: the key exists already, does not exist, or has another version.\n",
     1, 2, " file ttl flags if_absent if_present if_version "},
    {Verb::kGet, "get", "KEY [--meta] [--out=PATH]", "print a value",
     "--meta prints the version, flags, expiry and size instead. --out writes the value into that\n"
     "file, and prints nothing. Exit code 1: not found, and no file is written.\n",
     1, 1, " meta out "},
    {Verb::kMultiGet, "mget", "KEY...", "print several values, one per line",
     "Prints (nil) for a key that is not found. The exit code is then 1. --json tells this from\n"
     "a value of these five characters.\n",
     1, kAnyNumber, " "},
    {Verb::kDelete, "del", "KEY [--if_version=N]", "delete a key", "Exit code 1: not found.\n", 1,
     1, " if_version "},
    {Verb::kCompareAndSet, "cas", "KEY VERSION VALUE [--ttl=TIME] [--flags=N]",
     "store a value if the key has this version (0: does not exist); prints the new version",
     "If this prompt or script took the key's lock and has lost it, the write is refused.\n"
     "Exit code 1: the key has another version.\n",
     3, 3, " ttl flags "},
    {Verb::kMultiPut, "mput", "KEY VALUE...", "store several values in one call",
     "The words are keys and values in turn. Prints the versions, one per line.\n", 2, kAnyNumber,
     " ttl flags "},
    {Verb::kAppend, "append", "KEY VALUE [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
     "add to the end of a value; prints the new version",
     "If there is no such key, it is made, with --ttl and --flags. Exit code 1: --if_present, and\n"
     "the key does not exist; or it has another version.\n",
     2, 2, " ttl flags if_present if_version "},
    {Verb::kPrepend, "prepend",
     "KEY VALUE [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
     "add to the beginning of a value; prints the new version", "As append.\n", 2, 2,
     " ttl flags if_present if_version "},
    {Verb::kIncr, "incr",
     "KEY [NUMBER] [--initial=N] [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
     "add 1, or NUMBER, to a counter; prints the new number",
     "A counter is a decimal number of 64 bits. If there is no such key, it is made, with --ttl "
     "and\n"
     "--flags, and counts from --initial (0). Exit code 1: --if_present, and the key does not\n"
     "exist; or it has another version. 3: the value is no number, or the new one does not fit.\n",
     1, 2, " initial ttl flags if_present if_version "},
    {Verb::kDecr, "decr",
     "KEY [NUMBER] [--initial=N] [--ttl=TIME] [--flags=N] [--if_present] [--if_version=N]",
     "subtract 1, or NUMBER, from a counter; prints the new number", "As incr.\n", 1, 2,
     " initial ttl flags if_present if_version "},
    {Verb::kTouch, "touch", "KEY TIME", "give a key a new time to live (0: for ever)",
     "TIME: 10 or 10s, 500ms, 5m, 2h, 7d. Exit code 1: not found.\n", 2, 2, " "},
    {Verb::kGetAndTouch, "gat", "KEY TIME [--meta]", "touch a key, then print its value",
     "Exit code 1: not found.\n", 2, 2, " meta "},
    {Verb::kFlush, "flush", "[--yes]", "remove everything from all servers; prints how many items",
     "Asks first, on a terminal. Elsewhere it needs --yes.\n", 0, 0, " yes "},
    {Verb::kLock, "lock", "KEY [--wait=TIME] [--lease=TIME] -- COMMAND...",
     "hold a lock while a command runs; exits with the command's code",
     "Without COMMAND, at the prompt and in scripts, holds the lock until unlock or the end.\n"
     "Waits for --deadline_ms, or for --wait (0: one try). Exit code 75: another client holds the\n"
     "lock, so COMMAND did not run. Without COMMAND this exit code is 1.\n"
     "Locks are advisory: a plain put ignores them.\n"
     "--lease: the server breaks the lock after that time, even if COMMAND still runs.\n",
     1, 1, " wait lease "},
    {Verb::kUnlock, "unlock", "KEY [--force]", "release a lock (at the prompt and in scripts)",
     "--force breaks the lock, whichever client holds it. It works from the command line too.\n"
     "Exit code 1: the lock was not held.\n",
     1, 1, " force "},
    {Verb::kLocks, "locks", "", "show the locks that are held: lock word, holder, lease", "", 0, 0,
     " "},
    {Verb::kSnapshot, "snapshot", "[--wait=TIME]",
     "have a server with --data write a snapshot, and wait until it is whole",
     "Prints how many items and bytes it has, and where in the journal it was begun. Waits for an\n"
     "hour, or for --wait. Exit code 3: the server has no --data, or gave the snapshot up.\n",
     0, 0, " wait "},
    {Verb::kStats, "stats", "", "show the server's counters", "", 0, 0, " "},
    {Verb::kInfo, "info", "", "show the connection, and what the server granted", "", 0, 0, " "},
    {Verb::kPing, "ping", "", "measure one round trip through the server's CPU", "", 0, 0, " "},
    {Verb::kClients, "clients", "", "show who is connected, and what they do",
     "Hits, misses, READs and latencies are what the clients told with their heartbeats.\n", 0, 0,
     " "},
    {Verb::kSlowLog, "slowlog", "[--keys]", "show the last requests that took a server long",
     "The newest first. --keys shows the keys, too. kvserver --slowlog_us says what is long.\n", 0,
     0, " keys "},
    {Verb::kScan, "scan", "[--prefix=P] [--match=GLOB] [--limit=N] [--values] [--rate=N]",
     "list the keys",
     "Walks through the server's memory by one-sided READs, at most --rate a second (20000; 0: no\n"
     "limit), so that the server's CPU takes no part. Each key that is there all the time is "
     "shown\n"
     "at least once; a key may be shown twice. GLOB: * ? [a-z]. Keys that are no text, or hold\n"
     "control characters, are shown in quotes, as the prompt reads them.\n",
     0, 0, " prefix match limit values rate "},
    {Verb::kBigKeys, "bigkeys", "[--prefix=P] [--match=GLOB] [--count=N] [--rate=N]",
     "list the keys with the longest values", "Walks as scan does. --count: how many (10).\n", 0, 0,
     " prefix match count rate "},
    {Verb::kHotKeys, "hotkeys", "[--count=N] [--rate=N]", "list the keys that are used most",
     "READs, at most --rate times a second (20000; 0: no limit), what the server recorded of "
     "uses,\n"
     "then its index, and then the hot items; the server's CPU takes no part. --count: how many "
     "(10).\n"
     "Prints about how often a key was used of late (32+: so often or more), the value's length, "
     "and\n"
     "the key. Needs kvserver --on_full=evict.\n",
     0, 0, " count rate "},
    {Verb::kMemory, "memory", "[--prefix=P] [--match=GLOB] [--rate=N]",
     "show what items take of the memory, by size of block", "Walks as scan does.\n", 0, 0,
     " prefix match rate "},
    {Verb::kWatch, "watch", "KEY [--every=TIME] [--count=N]", "print each change of a value",
     "Looks by one-sided READs, each TIME (100ms), so it may miss changes that come faster. Ends\n"
     "after --count changes, or with Ctrl-C.\n",
     1, 1, " every count "},
    {Verb::kTop, "top", "[--interval=TIME] [--count=N] [--hotkeys=N]",
     "show what the clients do, live: GETs, hits, READs and requests a second",
     "On a terminal, a view of the whole window, drawn anew each TIME (1s); q ends it. Elsewhere\n"
     "prints a text each TIME, or with --json an object. Ends after --count. Rates are of the "
     "last\n"
     "5 seconds, or of TIME if that is longer. GETs, hits, READs and latencies are what the "
     "clients\n"
     "told with their heartbeats. Exit code 3: a server did not answer at the end.\n"
     "--hotkeys: also the N keys of each server that are used most, as hotkeys finds them, about\n"
     "once a second, over a connection that is among the clients then.\n",
     0, 0, " interval count hotkeys "},
    {Verb::kLatency, "latency", "[--count=N]", "measure GET, PUT and PING, and where the time goes",
     "Each is done N times (1000, at most 1000000), on a key of its own that is deleted at the "
     "end.\n"
     "The last lines say what the device, the lookup, the item, the server's CPU and the store "
     "take\n"
     "of it.\n",
     0, 0, " count "},
    {Verb::kDoctor, "doctor", "",
     "find out what is wrong with this machine or the way to the server",
     "Looks at devices, ports, GIDs, packet size, locked memory, huge pages and cores, and goes "
     "to\n"
     "each --server: by which GID, whether anybody listens there or something is in the way, and\n"
     "how far its clock is from this machine's. Each finding has the command that mends it. Works\n"
     "from the command line only.\n"
     "Exit code 1: warnings. 3: errors.\n",
     0, 0, " "},
    {Verb::kHelp, "help", "[COMMAND]", "show this text, or a command's help", "", 0, 1, " "},
    {Verb::kQuit, "quit", "", "leave the prompt", "", 0, 0, " "},
}};

const Spec& SpecOf(Verb verb) { return kSpecs[static_cast<size_t>(verb)]; }
static_assert(std::ranges::all_of(kSpecs, [i = 0](const Spec& spec) mutable {
  return static_cast<int>(spec.verb) == i++;
}));

absl::Status UsageError(const Spec& spec, std::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(spec.name, ": ", std::string(problem), "\nusage: ",
                                                 spec.name, *spec.usage ? " " : "", spec.usage));
}

// A word as the user gave it. A word behind a "--" is never an option or "-".
struct Word {
  std::string text;
  bool literal = false;
};

void TakeValue(const Word& word, Command* command) {
  command->value_from_stdin = word.text == "-" && !word.literal;
  if (!command->value_from_stdin) command->value = word.text;
}

// Returns the name of a command's word in its usage: KEY, VALUE and so on.
std::string NameOfWord(const Spec& spec, size_t number) {
  size_t at = 0;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(spec.usage, ' '))) {
    if (name.starts_with('[') || at++ != number) continue;
    return name.ends_with("...") ? name.substr(0, name.size() - 3) : name;
  }
  return "a word";
}

absl::Status TakeWords(const Spec& spec, const std::vector<Word>& words, Command* command) {
  if (words.size() < spec.words_min) {
    return UsageError(spec, absl::StrCat(NameOfWord(spec, words.size()), " is missing"));
  }
  if (words.size() > spec.words_max) {
    const bool splits = spec.verb == Verb::kPut || spec.verb == Verb::kCompareAndSet;
    return UsageError(spec, absl::StrCat("'", words[spec.words_max].text, "' is one word too many",
                                         splits ? "; put quotes around a VALUE with blanks" : ""));
  }
  if (spec.verb == Verb::kPut && (words.size() == 2) == !command->file.empty()) {
    return UsageError(spec, words.size() == 2 ? "VALUE and --file exclude each other"
                                              : "VALUE is missing, or --file=PATH");
  }
  switch (spec.verb) {
    case Verb::kHelp:
      if (!words.empty()) command->topic = words[0].text;
      return absl::OkStatus();
    case Verb::kPut:
    case Verb::kAppend:
    case Verb::kPrepend:
      if (words.size() > 1) TakeValue(words[1], command);
      break;
    case Verb::kMultiPut:
      if (words.size() % 2 != 0) return UsageError(spec, "a VALUE is missing");
      for (size_t i = 0; i < words.size(); i += 2) {
        command->keys.push_back(words[i].text);
        command->values.push_back(words[i + 1].text);
      }
      return absl::OkStatus();
    case Verb::kIncr:
    case Verb::kDecr:
      if (words.size() > 1 && !ParseNumber(words[1].text, &command->number)) {
        return UsageError(spec, "NUMBER is a number of 64 bits");
      }
      break;
    case Verb::kTouch:
    case Verb::kGetAndTouch: {
      auto ttl = ParseDuration(words[1].text);
      if (!ttl.ok()) return UsageError(spec, std::string(ttl.status().message()));
      command->ttl = *ttl;
      break;
    }
    case Verb::kCompareAndSet:
      if (!ParseNumber(words[1].text, &command->if_version.emplace())) {
        return UsageError(spec, "VERSION is a number");
      }
      TakeValue(words[2], command);
      break;
    default:
      break;
  }
  const size_t keys =
      spec.verb == Verb::kMultiGet ? words.size() : std::min<size_t>(1, words.size());
  for (size_t i = 0; i < keys; ++i) command->keys.push_back(words[i].text);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Command> ParseCommand(std::span<const std::string> words) {
  if (words.empty()) return absl::InvalidArgumentError("no command");
  const auto verb = FindVerb(words[0]);
  if (!verb) {
    return absl::InvalidArgumentError(absl::StrCat("no command '", words[0], "'; try help"));
  }
  const Spec& spec = SpecOf(*verb);
  Command command{.verb = *verb};
  std::vector<Word> plain;
  bool literal = false;
  for (const std::string& word : words.subspan(1)) {
    if (literal && *verb == Verb::kLock) {
      command.child.push_back(word);
    } else if (literal) {
      plain.push_back({word, true});
    } else if (word == "--") {
      literal = true;
    } else if (word.starts_with("--")) {
      const absl::Status applied = ApplyOption(spec.options, word, &command);
      if (!applied.ok()) return UsageError(spec, std::string(applied.message()));
    } else {
      plain.push_back({word, false});
    }
  }
  if (*verb == Verb::kLock && literal && command.child.empty()) {
    return UsageError(spec, "no command behind the --");
  }
  if (command.if_absent && command.if_present) {
    return UsageError(spec, "--if_absent and --if_present exclude each other");
  }
  if (command.if_absent && command.if_version) {
    return UsageError(spec, "--if_absent and --if_version exclude each other");
  }
  GANNET_RETURN_IF_ERROR(TakeWords(spec, plain, &command));
  return command;
}

std::string HelpText() {
  std::string text;
  for (const Spec& spec : kSpecs)
    absl::StrAppendFormat(&text, "  %-7s %s\n", spec.name, spec.summary);
  return text;
}

absl::StatusOr<std::string> HelpText(std::string_view topic) {
  if (topic.empty()) return HelpText();
  const auto verb = FindVerb(topic);
  if (!verb) return absl::NotFoundError(absl::StrCat("no command '", std::string(topic), "'"));
  const Spec& spec = SpecOf(*verb);
  return absl::StrCat(spec.name, *spec.usage ? " " : "", spec.usage, "\n", spec.summary, "\n",
                      spec.details, ExamplesOf(*verb));
}

absl::Status CheckOneShot(const Command& command) {
  if (command.verb == Verb::kLock && command.child.empty()) {
    return UsageError(SpecOf(command.verb),
                      "kvcli would end and free the lock at once: give it a command to run, or use "
                      "the prompt or a script");
  }
  if (command.verb == Verb::kUnlock && !command.force) {
    return UsageError(SpecOf(command.verb),
                      "a command line holds no lock to release: use --force, or the prompt or a "
                      "script");
  }
  return absl::OkStatus();
}

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const Spec& spec : kSpecs) names.emplace_back(spec.name);
  return names;
}

std::string_view UsageOf(Verb verb) { return SpecOf(verb).usage; }

std::optional<Verb> FindVerb(std::string_view name) {
  if (name == "exit") return Verb::kQuit;
  for (const Spec& spec : kSpecs) {
    if (name == spec.name) return spec.verb;
  }
  return std::nullopt;
}

}  // namespace gannet::kvcli
