// Redis' scripts. A script runs against copies of the items that it uses (ScriptItems). Then its
// changes are written, each if the store's item still has the version that was READ. If another
// client has changed one, nothing of the script is applied, and it runs anew. So a script that
// writes one key is atomic, whatever it does. If it writes several, others may see the state
// between two writes; and if one finds that others have written, the other ones are undone.
//
// Scripts of a thread that are given the same key run one after another. So clients that count with
// the same key do not make each other's scripts run anew.

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proxy/jobs/redis_commands.h"
#include "proxy/jobs/scripts.h"

namespace gannet::proxy {

void LoadedScripts::Add(const std::string& sha1, std::string_view text) {
  const MutexLock lock(mutex_);
  if (loaded_.contains(sha1)) return;
  loaded_.emplace(sha1, std::make_shared<const std::string>(text));
  order_.push_back(sha1);
  bytes_ += text.size();
  while (order_.size() > kMax || bytes_ > kBytesMax) {
    const auto oldest = loaded_.find(order_.front());
    bytes_ -= oldest->second->size();
    loaded_.erase(oldest);
    order_.pop_front();
  }
}

std::shared_ptr<const std::string> LoadedScripts::Find(const std::string& sha1) const {
  const MutexLock lock(mutex_);
  const auto found = loaded_.find(sha1);
  return found == loaded_.end() ? nullptr : found->second;
}

void LoadedScripts::Clear() {
  const MutexLock lock(mutex_);
  loaded_.clear();
  order_.clear();
  bytes_ = 0;
}

bool ScriptRun::Call(std::span<const std::string_view> words, std::string_view* reply) {
  ParsedCommand command;
  // One view of all words, as they lie behind each other.
  const std::string_view bytes(
      words.front().data(),
      static_cast<size_t>(words.back().data() + words.back().size() - words.front().data()));
  command.words.assign(words.begin(), words.end());
  part.Reset(bytes, command);
  part.client = &client;
  part.service = service;
  part.counters = counters;
  PrepareRedis(part);
  if (!items.Run(part)) return false;
  *reply = part.reply;
  return true;
}

namespace redis {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;

constexpr size_t kScriptKeysMax = 1024;
constexpr char kHalf[] =
    "ERR others changed a key of the script while its keys were written: some of them are written, "
    "others are not";
constexpr char kTooOften[] =
    "ERR others changed the keys of the script all the time, and nothing was written; try again";

void Ask(Job& job);
void ReadItems(Job& job);

bool IsRefused(const Operation& write) {
  return write.kind == Kind::kPut ? write.code == StatusCode::kFailedPrecondition
                                  : write.others_wrote();
}

void RunAnew(Job& job) { job.TryAgain() ? ReadItems(job) : Fail(job, kTooOften); }

void Undone(Job& job) {
  for (const Operation& undo : job.answers()) {
    if (undo.code != StatusCode::kOk || IsRefused(undo)) return Fail(job, kHalf);
  }
  RunAnew(job);
}

// If one item was changed by others meanwhile, undoes the writes of the others.
void ScriptWritten(Job& job) {
  bool conflict = false;
  for (const Operation& write : job.answers()) {
    const bool is_refused = IsRefused(write);
    conflict = conflict || is_refused;
    if (write.code != StatusCode::kOk && !is_refused) return Fail(job, write);
  }
  if (!conflict) return;
  job.script->items.BeginUndo(job) ? job.Then(Undone) : RunAnew(job);
}

void WriteItems(Job& job) {
  job.script->items.BeginWrites(job);
  job.Then(ScriptWritten);
}

void OthersChecked(Job& job) {
  for (const Operation& now : job.answers()) {
    if (now.code != StatusCode::kOk) return Fail(job, now);
    if (job.script->items.IsUnchanged(now)) continue;
    return RunAnew(job);
  }
  WriteItems(job);
}

// Runs the script. If it asks for a key that was not named, it runs anew, with that one.
void Execute(Job& job) {
  ScriptRun& run = *job.script;
  job.reply.clear();
  const ScriptEnd end = RunScript({.text = run.text,
                                   .sha1 = run.sha1,
                                   .keys = run.names,
                                   .arguments = run.arguments,
                                   .cpu_ms_max = job.service->script_cpu_ms},
                                  run, &job.reply, job.resp3);
  if (end == ScriptEnd::kStopped) {
    run.keys.insert(run.keys.end(), run.items.missing().begin(), run.items.missing().end());
    if (run.keys.size() > kScriptKeysMax) {
      return Fail(job, absl::StrCat("ERR a script uses at most ", kScriptKeysMax, " keys here"));
    }
    return ReadItems(job);
  }
  if (end == ScriptEnd::kReplied) job.service->scripts->Add(run.sha1, run.text);
  if (const size_t held = run.items.made_bytes() + job.reply.capacity(); held > run.wanted) {
    run.wanted = held + held / 4;
    run.items.Clear();
    std::string().swap(job.reply);
    return job.TryAgain() ? Ask(job) : Fail(job, kTooOften);
  }
  if (!run.items.has_changed()) return;
  const bool reads_others = run.items.size() > 1 && run.items.BeginChecks(job);
  reads_others ? job.Then(OthersChecked) : WriteItems(job);
}

void ItemsRead(Job& job) {
  for (Operation& got : job.answers()) {
    if (got.code != StatusCode::kOk) return Fail(job, got);
    job.script->items.Take(got);
  }
  Execute(job);
}

void ReadItems(Job& job) {
  ScriptRun& run = *job.script;
  run.items.Clear();
  std::sort(run.keys.begin(), run.keys.end());
  run.keys.erase(std::unique(run.keys.begin(), run.keys.end()), run.keys.end());
  if (run.keys.empty()) return Execute(job);
  for (const std::string& key : run.keys) job.Begin(Kind::kGet, key);
  job.Then(ItemsRead);
}

void Granted(Job& job) {
  Operation& asked = job.answer();
  if (asked.code != StatusCode::kOk) return Fail(job, asked);
  job.script->charge.TakeFrom(asked.charge, asked.brings);
  ReadItems(job);
}

// Asks for memory. If the script turns out to need more, it asks for that, and runs anew.
void Ask(Job& job) {
  ScriptRun& run = *job.script;
  job.Begin(Kind::kMemory, {}).brings = run.wanted - run.charge.bytes();
  job.Then(Granted);
}

void TakeTurns(Job& job) {
  const ScriptRun& run = *job.script;
  if (job.turns.size() == run.turns.size()) return Ask(job);
  job.Begin(Kind::kTurn, {}).delta = static_cast<int64_t>(run.turns[job.turns.size()]);
  job.Then(TakeTurns);
}

// Takes the keys and the arguments. Returns false, and replies, if they are wrong.
bool TakeScriptKeys(Job& job) {
  const auto& words = job.words();
  int64_t count = 0;
  if (!ParseInteger(words[2], &count)) return Fail(job, kNoInteger), false;
  if (count < 0) return Fail(job, "ERR Number of keys can't be negative"), false;
  if (static_cast<uint64_t>(count) > words.size() - 3) {
    return Fail(job, "ERR Number of keys can't be greater than number of args"), false;
  }
  if (count > static_cast<int64_t>(kScriptKeysMax)) {
    Fail(job, absl::StrCat("ERR a script uses at most ", kScriptKeysMax, " keys here"));
    return false;
  }
  job.script->names = std::span(words).subspan(3, static_cast<size_t>(count));
  job.script->arguments = std::span(words).subspan(3 + static_cast<size_t>(count));
  job.keys.assign(job.script->names.begin(), job.script->names.end());
  if (!TakeNames(job)) return false;
  job.script->keys.assign(job.keys.begin(), job.keys.end());
  return true;
}

// Without keys it is not known which ones the script will use.
void BeginScript(Job& job) {
  ScriptRun& run = *job.script;
  if (!TakeScriptKeys(job)) return;
  run.client.database = job.client->database;
  run.client.in_script = true;
  run.service = job.service;
  run.counters = job.counters;
  if (job.keys.empty()) job.access = Access::kAll;
  run.charge = Charge(job.holder);
  for (const std::string_view key : job.keys) {
    run.turns.push_back(absl::Hash<std::string_view>()(key));
  }
  std::sort(run.turns.begin(), run.turns.end());
  run.turns.erase(std::unique(run.turns.begin(), run.turns.end()), run.turns.end());
  job.Then(TakeTurns);
}

std::string LowerName(std::string_view sha1) {
  return absl::AsciiStrToLower(absl::string_view(sha1.data(), std::min<size_t>(sha1.size(), 64)));
}

// Returns false, and replies, if the text is too long.
bool TextFits(Job& job, std::string_view text) {
  if (text.size() <= kScriptTextMax) return true;
  Fail(job, absl::StrCat("ERR a script of ", text.size(), " bytes: at most ", kScriptTextMax));
  return false;
}

}  // namespace

void PrepareEval(Job& job) {
  if (!TextFits(job, job.words()[1])) return;
  job.script = std::make_unique<ScriptRun>();
  job.script->text = job.words()[1];
  job.script->sha1 = Sha1Hex(job.script->text);
  BeginScript(job);
}

void PrepareEvalSha(Job& job) {
  const std::string sha1 = LowerName(job.words()[1]);
  std::shared_ptr<const std::string> loaded = job.service->scripts->Find(sha1);
  if (loaded == nullptr) return Fail(job, "NOSCRIPT No matching script. Please use EVAL.");
  job.script = std::make_unique<ScriptRun>();
  job.script->text = *loaded;
  job.script->loaded = std::move(loaded);
  job.script->sha1 = sha1;
  BeginScript(job);
}

void PrepareScript(Job& job) {
  const auto& words = job.words();
  const std::string what = Upper(words[1]);
  if (what == "LOAD" && words.size() == 3) {
    if (!TextFits(job, words[2])) return;
    if (const auto error = ScriptError(words[2])) return Fail(job, *error);
    const std::string sha1 = Sha1Hex(words[2]);
    job.service->scripts->Add(sha1, words[2]);
    return Reply(job).Bulk(sha1);
  }
  if (what == "EXISTS" && words.size() > 2) {
    RespReply reply = Reply(job);
    reply.Array(words.size() - 2);
    for (size_t i = 2; i < words.size(); ++i) {
      reply.Integer(job.service->scripts->Find(LowerName(words[i])) == nullptr ? 0 : 1);
    }
    return;
  }
  if (what == "FLUSH") {
    job.service->scripts->Clear();
    return Reply(job).Simple("OK");
  }
  if (what == "KILL") return Fail(job, "NOTBUSY No scripts in execution right now.");
  Fail(job, "ERR of SCRIPT there are LOAD, EXISTS, FLUSH and KILL");
}

}  // namespace redis
}  // namespace gannet::proxy
