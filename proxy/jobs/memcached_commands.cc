#include "proxy/jobs/memcached_commands.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/layout/item.h"
#include "common/protocol/limits.h"
#include "proxy/jobs/passwords.h"
#include "proxy/jobs/store_error.h"

namespace gannet::proxy {

std::optional<Lifetime> ParseExptime(std::string_view word, int64_t now_seconds) {
  int64_t seconds = 0;
  if (!ParseNumber(word, &seconds)) return {};
  return LifetimeOf(seconds, now_seconds);
}

Lifetime LifetimeOf(int64_t seconds, int64_t now_seconds) {
  constexpr int64_t kRelativeMax = 30 * 24 * 3600;
  if (seconds == 0) return Lifetime{};
  if (seconds > kRelativeMax) seconds -= now_seconds;
  if (seconds <= 0) return Lifetime{.ttl = std::chrono::milliseconds(1), .over = true};
  seconds = std::min<int64_t>(seconds, kTtlMsMax / 1000);
  return Lifetime{.ttl = std::chrono::seconds(seconds)};
}

namespace memcached {
namespace {

using Kind = Operation::Kind;
using Prepare = void (*)(Job&);

void Say(Job& job, std::string_view text) { job.reply.append(text); }

// "noreply" is the last word of a command with this many words. It silences errors too: the client
// would take them for the answer to its next command.
void TakeNoreply(Job& job, size_t words_with_it) {
  job.silent = job.words().size() == words_with_it && job.words().back() == "noreply";
}

// --- get, gets, gat, gats ---

void AppendValue(Job& job, const Operation& found) {
  const std::string_view value = found.found_value();
  job.reply.append("VALUE ").append(found.key);
  job.reply += absl::StrCat(" ", found.info.flags, " ", value.size());
  if (job.scratch.with_version) job.reply += absl::StrCat(" ", found.info.version);
  job.reply.append("\r\n").append(value).append("\r\n");
}

void Retrieve(Job& job);

void GoOnRetrieving(Job& job) {
  if (job.has_more_keys()) Retrieve(job);
}

// gat with a time that is over: nobody sees the values after this.
void RemoveFound(Job& job) {
  std::vector<std::pair<std::string_view, uint64_t>> found;
  for (const Operation& got : job.answers()) {
    if (got.found) found.emplace_back(got.key, got.info.version);
  }
  for (const auto& [key, version] : found) {
    job.Begin(Kind::kDelete, key).put.only_if_version = version;
  }
  job.Then(GoOnRetrieving);
}

// Keys of a lost server are misses. Libraries that know several memcached servers do the same. If
// no key was answered, the reply is the error.
void Retrieved(Job& job) {
  const auto answered = [](const Operation& it) { return it.code == absl::StatusCode::kOk; };
  if (std::none_of(job.answers().begin(), job.answers().end(), answered)) {
    return Fail(job, job.answer());
  }
  for (const Operation& got : job.answers()) {
    job.counters->gets.Add();
    if (!answered(got) || !got.found) continue;
    job.counters->hits.Add();
    AppendValue(job, got);
  }
  const bool has_more = job.has_more_keys();
  if (!has_more) Say(job, "END\r\n");
  if (job.scratch.over) return RemoveFound(job);
  if (!has_more) return;
  job.ChargeReply();
  Retrieve(job);
}

void Retrieve(Job& job) {
  const bool touches = job.words()[0].starts_with("gat") && !job.scratch.over;
  job.BeginOnNextKeys([&](size_t i) {
    job.Begin(touches ? Kind::kGetAndTouch : Kind::kGet, job.keys[i]).put.ttl = job.scratch.ttl;
  });
  job.Then(Retrieved);
}

void PrepareRetrieval(Job& job, size_t first_key, Access access) {
  if (job.words().size() <= first_key) return Say(job, kError);
  job.keys.assign(job.words().begin() + static_cast<ptrdiff_t>(first_key), job.words().end());
  for (const std::string_view key : job.keys) {
    if (!KeyFits(job, key)) return Say(job, kBadLine);
  }
  job.access = access;
  job.scratch.with_version = job.words()[0].ends_with('s');
  job.Then(Retrieve);
}

void PrepareGet(Job& job) { PrepareRetrieval(job, 1, Access::kRead); }

void PrepareGat(Job& job) {
  if (job.words().size() < 3) return Say(job, kError);
  const auto lifetime = Exptime(job.words()[1]);
  if (!lifetime) return Say(job, "CLIENT_ERROR invalid exptime argument\r\n");
  job.scratch.ttl = lifetime->ttl;
  job.scratch.over = lifetime->over;
  PrepareRetrieval(job, 2, Access::kSteps);
}

// --- storage ---

// Sets what the words of a storage command say. Returns false if they are wrong.
bool TakeStorageWords(Job& job) {
  const auto& words = job.words();
  uint32_t flags = 0;
  const auto lifetime = Exptime(words[3]);
  if (!KeyFits(job, words[1]) || !ParseNumber(words[2], &flags) || !lifetime) return false;
  job.scratch.put.flags = flags;
  job.scratch.put.ttl = lifetime->ttl;
  job.scratch.over = lifetime->over;
  return true;
}

void PrepareStorage(Job& job) {
  const std::string_view name = job.words()[0];
  const size_t words = name == "cas" ? 6 : 5;
  if (!job.has_data() || job.words().size() < words) return Say(job, kError);
  TakeNoreply(job, words + 1);
  uint64_t version = 0;
  const bool right =
      TakeStorageWords(job) && (name != "cas" || ParseNumber(job.words()[5], &version));
  if (!right) return Say(job, kBadLine);
  PutOptions& put = job.scratch.put;
  put.only_if_absent = name == "add";
  put.only_if_present = name == "replace" || name == "append" || name == "prepend";
  // A cas unique of 0: no item has the version that is used here. To the store, 0 would mean that
  // there is no item.
  if (name == "cas") {
    put.only_if_version = version == 0 ? std::numeric_limits<uint64_t>::max() : version;
  }
  job.scratch.is_prefix = name == "prepend";
  const bool extends = name == "append" || name == "prepend";
  job.counters->sets.Add();
  UseKey(job, job.words()[1], extends || job.scratch.over ? Access::kSteps : Access::kWrite);
  job.Then(extends ? Extend : Store);
}

// --- the others ---

void PrepareDelete(Job& job) {
  const auto& words = job.words();
  if (words.size() < 2 || words.size() > 4) return Say(job, kError);
  job.silent = words.size() > 2 && words.back() == "noreply";
  // As in memcached, the time is a relic, and must be 0.
  const bool right = words.size() == 2 || job.silent || words[2] == "0";
  if (!right || (words.size() == 4 && words[2] != "0")) {
    return Say(job, "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n");
  }
  if (!KeyFits(job, words[1])) return Say(job, kBadLine);
  UseKey(job, words[1], Access::kWrite);
  job.Then(Remove);
}

void PrepareCount(Job& job) {
  const auto& words = job.words();
  if (words.size() < 3 || words.size() > 4) return Say(job, kError);
  TakeNoreply(job, 4);
  if (!KeyFits(job, words[1])) return Say(job, kBadLine);
  if (!ParseNumber(words[2], &job.scratch.delta)) {
    return Say(job, "CLIENT_ERROR invalid numeric delta argument\r\n");
  }
  job.scratch.is_subtraction = words[0] == "decr";
  UseKey(job, words[1], Access::kSteps);
  job.Then(Count);
}

void Touched(Job& job) {
  const Operation& touch = job.answer();
  if (touch.code != absl::StatusCode::kOk) return Fail(job, touch);
  Conclude(job, touch.found ? Ending::kTouched : Ending::kNotFound);
}

void Touch(Job& job) {
  job.Begin(job.scratch.over ? Kind::kDelete : Kind::kTouch, job.keys[0]).put.ttl = job.scratch.ttl;
  job.Then(Touched);
}

void PrepareTouch(Job& job) {
  const auto& words = job.words();
  if (words.size() < 3 || words.size() > 4) return Say(job, kError);
  TakeNoreply(job, 4);
  if (!KeyFits(job, words[1])) return Say(job, kBadLine);
  const auto lifetime = Exptime(words[2]);
  if (!lifetime) return Say(job, "CLIENT_ERROR invalid exptime argument\r\n");
  job.scratch.ttl = lifetime->ttl;
  job.scratch.over = lifetime->over;
  UseKey(job, words[1], Access::kWrite);
  job.Then(Touch);
}

void Flushed(Job& job) {
  const std::string failed = FailedServers(job);
  if (failed.empty()) return Say(job, "OK\r\n");
  job.reply = absl::StrCat("SERVER_ERROR the other servers are flushed, but not ", failed, "\r\n");
}

void Flush(Job& job) {
  job.BeginOnEach(Kind::kFlush);
  job.Then(Flushed);
}

void PrepareFlush(Job& job) {
  const auto& words = job.words();
  job.silent = words.size() > 1 && words.back() == "noreply";
  const size_t numbers = words.size() - 1 - (job.silent ? 1 : 0);
  if (numbers > 1) return Say(job, kError);
  if (numbers == 1 && words[1] != "0") {
    return Say(job, "CLIENT_ERROR a flush cannot be delayed here\r\n");
  }
  job.access = Access::kAll;
  job.Then(Flush);
}

void PrepareVersion(Job& job) {
  job.reply = absl::StrCat("VERSION ", job.service->version, "\r\n");
}

void PrepareVerbosity(Job& job) {
  job.silent = job.words().back() == "noreply";
  Say(job, job.words().size() < 2 ? kError : "OK\r\n");
}

void PrepareQuit(Job& job) {
  job.client->closing = true;
  job.silent = true;
}

// As memcached does with --auth-file: before everything else comes a `set`, whose data is the user
// and the password.
void Authenticate(Job& job) {
  if (job.words()[0] == "quit") return PrepareQuit(job);
  if (job.words()[0] != "set" || !job.has_data()) {
    return Say(job, "CLIENT_ERROR unauthenticated\r\n");
  }
  std::vector<std::string_view> words;
  SplitWords(job.data(), &words);
  job.client->authenticated = words.size() == 2 && job.service->passwords->Fit(words[0], words[1]);
  Say(job, job.client->authenticated ? "STORED\r\n" : "CLIENT_ERROR authentication failure\r\n");
}

constexpr struct {
  std::string_view name;
  Prepare prepare;
} kCommands[] = {
    {"get", PrepareGet},         {"set", PrepareStorage},     {"gets", PrepareGet},
    {"incr", PrepareCount},      {"decr", PrepareCount},      {"delete", PrepareDelete},
    {"add", PrepareStorage},     {"replace", PrepareStorage}, {"cas", PrepareStorage},
    {"append", PrepareStorage},  {"prepend", PrepareStorage}, {"touch", PrepareTouch},
    {"gat", PrepareGat},         {"gats", PrepareGat},        {"flush_all", PrepareFlush},
    {"version", PrepareVersion}, {"stats", PrepareStats},     {"verbosity", PrepareVerbosity},
    {"quit", PrepareQuit},
};

}  // namespace

bool KeyFits(const Job& job, std::string_view key) { return job.client->database.MayHave(key); }

void UseKey(Job& job, std::string_view key, Access access) {
  job.keys.assign(1, key);
  job.access = access;
}

std::optional<Lifetime> Exptime(std::string_view word) {
  return ParseExptime(word, std::time(nullptr));
}

void Fail(Job& job, const Operation& operation) {
  if (job.scratch.is_binary) return binary::Fail(job, operation);
  job.reply = absl::StrCat("SERVER_ERROR ", StoreErrorText(operation), "\r\n");
}

void Conclude(Job& job, Ending ending) {
  if (job.scratch.is_meta) return ConcludeMeta(job, ending);
  if (job.scratch.is_binary) return binary::Conclude(job, ending);
  switch (ending) {
    case Ending::kStored:
      return Say(job, "STORED\r\n");
    case Ending::kNotStored:
      return Say(job, "NOT_STORED\r\n");
    case Ending::kExists:
      return Say(job, "EXISTS\r\n");
    case Ending::kNotFound:
      return Say(job, "NOT_FOUND\r\n");
    case Ending::kDeleted:
      return Say(job, "DELETED\r\n");
    case Ending::kTouched:
      return Say(job, "TOUCHED\r\n");
  }
}

void CountDone(Job& job, std::string_view number, const ItemInfo& info) {
  if (job.scratch.is_meta) return CountDoneMeta(job, number, info);
  if (job.scratch.is_binary) return binary::CountDone(job, number, info);
  job.reply.append(number).append("\r\n");
}

}  // namespace memcached

void PrepareMemcached(Job& job) {
  using namespace memcached;  // NOLINT: of this file
  if (job.words().empty()) return Say(job, kError);
  if (!job.client->authenticated) return Authenticate(job);
  for (const auto& command : kCommands) {
    if (job.words()[0] == command.name) return command.prepare(job);
  }
  if (!PrepareMeta(job)) Say(job, kError);
}

}  // namespace gannet::proxy
