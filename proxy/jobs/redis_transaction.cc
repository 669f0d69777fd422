// Redis' transactions. MULTI queues commands, and EXEC runs them one after another, in their order.
// Other clients may see the store between two of them, because the store has no writes of several
// keys.
//
// WATCH remembers versions. EXEC compares them, and makes the first write of each watched key
// conditional on its version. So no write of others between WATCH and that write is lost.

#include "absl/strings/str_cat.h"
#include "proxy/jobs/redis_commands.h"
#include "proxy/jobs/store_error.h"
#include "proxy/protocol/resp_parser.h"

namespace gannet::proxy::redis {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;

constexpr char kConflict[] =
    "EXECABORT a watched key was changed while the transaction ran: the commands before this one "
    "were applied, this one and those behind it were not";

// Longer commands are not copied.
constexpr size_t kCopiedMax = 64 << 10;
// What a queued command or a watched key takes beyond its bytes.
constexpr size_t kOverhead = 64;

void Discard(Transaction& transaction) { transaction = {}; }

void Abort(Job& job, std::string_view why) {
  Fail(job, absl::StrCat("EXECABORT Transaction discarded because of ", std::string(why)));
}

void RunNext(Job& job);

// A write found that others had changed its watched key.
void EndInConflict(Job& job) {
  Execution& run = *job.execution;
  if (!run.guard.applied()) {
    job.reply.clear();
    return Reply(job).NullArray();
  }
  for (; run.answers < run.commands.size(); ++run.answers) Reply(job).Error(kConflict);
}

void PartDone(Job& job) {
  Execution& run = *job.execution;
  if (run.guard.conflict()) return EndInConflict(job);
  job.reply.append(run.part.reply);
  run.part.KeepOnlyReply();
  run.part.reply = {};
  run.part.charge.Set(0);
  job.charge.Set(job.reply.capacity());
  job.value_bytes = run.part.value_bytes;
  ++run.answers;
  RunNext(job);
}

void RunNext(Job& job) {
  Execution& run = *job.execution;
  if (run.next == run.commands.size()) return;
  std::string& bytes = run.commands[run.next++];
  ParsedCommand command;
  ParseResp(bytes, &command);  // it was parsed before
  Job& part = run.part;
  // A long command is not copied. The transaction counts it until its end.
  if (bytes.size() > kCopiedMax) {
    part.Reset(std::move(bytes), command);
  } else {
    part.Reset(std::string_view(bytes), command);
  }
  part.holder = job.holder;
  part.charge = Charge(job.holder);
  part.client = &run.client;
  part.service = job.service;
  part.counters = job.counters;
  part.resp3 = job.resp3;
  part.value_bytes = job.value_bytes;
  PrepareRedis(part);
  part.guard = &run.guard;
  job.BeginPart(part);
  job.Then(PartDone);
}

void RunAll(Job& job) {
  Reply(job).Array(job.execution->commands.size());
  RunNext(job);
}

void Checked(Job& job) {
  for (const Operation& now : job.answers()) {
    if (now.code != StatusCode::kOk) return Abort(job, StoreErrorText(now));
    const Watches::Watch* watch = job.execution->guard.watches()->Find(now.key);
    if (now.info.version != watch->version) return Reply(job).NullArray();
  }
  RunAll(job);
}

void Exec(Job& job) {
  Watches* watches = job.execution->guard.watches();
  if (watches == nullptr) return RunAll(job);
  for (const Watches::Watch& watch : watches->all()) {
    if (!watch.read) return Abort(job, "a WATCH that failed");
  }
  for (const Watches::Watch& watch : watches->all()) {
    job.Begin(Kind::kGet, watch.key).wants_value = false;
  }
  job.Then(Checked);
}

void Watched(Job& job) {
  for (const Operation& got : job.answers()) {
    if (got.code != StatusCode::kOk) return Fail(job, got);
    Watches::Watch* watch = job.scratch.watches->Find(got.key);
    if (watch->read) continue;  // an earlier WATCH saw it first
    watch->read = true;
    watch->version = got.info.version;
  }
  Reply(job).Simple("OK");
}

void Watch(Job& job) {
  for (const std::string_view key : job.keys) job.Begin(Kind::kGet, key).wants_value = false;
  job.Then(Watched);
}

}  // namespace

void PrepareMulti(Job& job) {
  Transaction& transaction = job.client->transaction;
  if (transaction.open) return Fail(job, "ERR MULTI calls can not be nested");
  transaction.open = true;
  Reply(job).Simple("OK");
}

void PrepareDiscard(Job& job) {
  if (!job.client->transaction.open) return Fail(job, "ERR DISCARD without MULTI");
  Discard(job.client->transaction);
  Reply(job).Simple("OK");
}

void PrepareExec(Job& job) {
  Transaction& transaction = job.client->transaction;
  if (!transaction.open) return Fail(job, "ERR EXEC without MULTI");
  if (transaction.refused) {
    Discard(transaction);
    return Abort(job, "previous errors.");
  }
  job.execution = std::make_unique<Execution>(std::move(transaction));
  job.execution->client.id = job.client->id;
  job.execution->client.name = job.client->name;
  job.execution->client.resp3 = job.client->resp3;
  job.execution->client.database = job.client->database;
  Discard(transaction);
  job.Then(Exec);
}

void PrepareWatch(Job& job) {
  Transaction& transaction = job.client->transaction;
  if (transaction.open) return Fail(job, "ERR WATCH inside MULTI is not allowed");
  if (transaction.watches == nullptr) transaction.watches = std::make_shared<Watches>();
  if (transaction.watches->all().size() + job.keys.size() > Watches::kMax) {
    return Fail(job, absl::StrCat("ERR at most ", Watches::kMax, " keys can be watched"));
  }
  transaction.watched = Charge(job.holder, Use::kQueued);
  transaction.watched.Set(transaction.watches->Add(job.keys));
  job.scratch.watches = transaction.watches;
  job.Then(Watch);
}

void PrepareUnwatch(Job& job) {
  job.client->transaction.watches.reset();
  job.client->transaction.watched.Set(0);
  Reply(job).Simple("OK");
}

void Queue(Job& job) {
  Transaction& transaction = job.client->transaction;
  const size_t bytes = transaction.bytes + job.bytes().size();
  if (bytes > kCommandBytesMax || transaction.commands.size() == Transaction::kCommandsMax) {
    transaction.refused = true;
    return Fail(job, absl::StrCat("ERR a transaction has at most ", Transaction::kCommandsMax,
                                  " commands and ", kCommandBytesMax, " bytes"));
  }
  transaction.bytes = bytes;
  // What the job has taken for the command goes over to the transaction.
  if (transaction.commands.empty()) transaction.charge = Charge(job.holder, Use::kQueued);
  std::string& command = transaction.commands.emplace_back(job.TakeBytes());
  transaction.charge.TakeFrom(job.charge, command.capacity() + kOverhead);
  Reply(job).Simple("QUEUED");
}

}  // namespace gannet::proxy::redis
