// memcached's binary protocol. Its commands are the same jobs as those of the text protocol. This
// file makes jobs of the frames, and frames of how the jobs end.

#include "proxy/protocol/memcached_binary.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "proxy/jobs/memcached_commands.h"
#include "proxy/jobs/passwords.h"
#include "proxy/jobs/store_error.h"

namespace gannet::proxy {
namespace memcached {
// Stages here have the names of those of the text protocol.
namespace binary {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;
using Status = BinaryStatus;

std::string_view Header(const Job& job) { return job.words()[0]; }
std::string_view Extras(const Job& job) { return job.words()[1]; }
std::string_view Key(const Job& job) { return job.words()[2]; }
uint64_t Cas(const Job& job) { return BigEndian<8>(Header(job).substr(16)); }

enum BinaryOpcode : uint8_t {
  kGet = 0x00,
  kSet = 0x01,
  kAdd = 0x02,
  kReplace = 0x03,
  kDelete = 0x04,
  kIncrement = 0x05,
  kDecrement = 0x06,
  kQuit = 0x07,
  kFlush = 0x08,
  kGetQ = 0x09,
  kNoop = 0x0a,
  kVersion = 0x0b,
  kGetK = 0x0c,
  kGetKQ = 0x0d,
  kAppend = 0x0e,
  kPrepend = 0x0f,
  kStat = 0x10,
  kSetQ = 0x11,  // to kPrependQ: the quiet forms of kSet to kPrepend
  kQuitQ = 0x17,
  kFlushQ = 0x18,
  kAppendQ = 0x19,
  kPrependQ = 0x1a,
  kVerbosity = 0x1b,
  kTouch = 0x1c,
  kGat = 0x1d,
  kGatQ = 0x1e,
  kSaslList = 0x20,
  kSaslAuth = 0x21,
  kSaslStep = 0x22,
  kGatK = 0x23,
  kGatKQ = 0x24,
};

uint8_t OpcodeOf(const Job& job) { return static_cast<uint8_t>(Header(job)[1]); }

// Returns the command without "quiet", and without "key in the answer".
uint8_t PlainOpcode(uint8_t opcode) {
  switch (opcode) {
    case kGetQ:
    case kGetK:
    case kGetKQ:
      return kGet;
    case kGatQ:
    case kGatK:
    case kGatKQ:
      return kGat;
    case kAppendQ:
      return kAppend;
    case kPrependQ:
      return kPrepend;
    default:
      return opcode >= kSetQ && opcode <= kFlushQ ? opcode - kSetQ + kSet : opcode;
  }
}
bool IsQuiet(uint8_t opcode) {
  return opcode == kGetQ || opcode == kGetKQ || opcode == kGatQ || opcode == kGatKQ ||
         (opcode >= kSetQ && opcode <= kPrependQ);
}
bool AnswersKey(uint8_t opcode) {
  return opcode == kGetK || opcode == kGetKQ || opcode == kGatK || opcode == kGatKQ;
}

const char* TextOf(Status status) {
  switch (status) {
    case Status::kOk:
      return "";
    case Status::kNotFound:
      return "Not found";
    case Status::kExists:
      return "Data exists for key.";
    case Status::kTooLarge:
      return "Too large.";
    case Status::kInvalid:
      return "Invalid arguments";
    case Status::kNotStored:
      return "Not stored.";
    case Status::kNotANumber:
      return "Non-numeric server-side value for incr or decr";
    case Status::kNotAuthenticated:
      return "Auth failure";
    case Status::kUnknownCommand:
      return "Unknown command";
    case Status::kOutOfMemory:
      return "Out of memory";
    case Status::kTemporaryFailure:
      return "Temporary failure";
  }
  return "";
}

void Answer(Job& job, const BinaryAnswer& answer) {
  AppendBinaryAnswer(&job.reply, Header(job), answer);
}

void Succeed(Job& job, uint64_t cas = 0) {
  job.silent = IsQuiet(OpcodeOf(job));
  Answer(job, {.cas = cas});
}

void Refuse(Job& job, Status status, std::string_view text = "") {
  job.reply.clear();
  job.silent = false;
  Answer(job, {.status = status, .value = text.empty() ? TextOf(status) : text});
}

// --- get, gat, touch ---

void Missed(Job& job) {
  const uint8_t opcode = OpcodeOf(job);
  job.silent = IsQuiet(opcode);
  const bool with_key = AnswersKey(opcode);
  Answer(job, {.status = Status::kNotFound,
               .key = with_key ? Key(job) : std::string_view(),
               .value = with_key ? std::string_view() : TextOf(Status::kNotFound)});
}

void Retrieved(Job& job) {
  const Operation& got = job.answer();
  const bool counts = OpcodeOf(job) != kTouch;
  if (counts) job.counters->gets.Add();
  if (got.code != StatusCode::kOk) return binary::Fail(job, got);
  if (!got.found) return Missed(job);
  if (counts) job.counters->hits.Add();
  std::string flags;
  AppendBigEndian<4>(&flags, got.info.flags);
  Answer(job, {.extras = flags,
               .key = AnswersKey(OpcodeOf(job)) ? Key(job) : std::string_view(),
               .value = counts ? got.found_value() : std::string_view(),
               .cas = got.info.version});
  if (!job.scratch.over) return;
  // The time is over, so the value was the last that anybody sees.
  const uint64_t version = got.info.version;
  job.Begin(Kind::kDelete, job.keys[0]).put.only_if_version = version;
  job.Then(Ignore);
}

void Retrieve(Job& job) {
  const bool touches = PlainOpcode(OpcodeOf(job)) != kGet && !job.scratch.over;
  Operation& get = job.Begin(touches ? Kind::kGetAndTouch : Kind::kGet, job.keys[0]);
  get.put.ttl = job.scratch.ttl;
  get.wants_value = OpcodeOf(job) != kTouch;
  job.Then(Retrieved);
}

Lifetime LifetimeAt(const Job& job, size_t at) {
  return LifetimeOf(static_cast<int64_t>(BigEndian<4>(Extras(job).substr(at))), std::time(nullptr));
}

void PrepareRetrieval(Job& job, bool has_time) {
  if (Extras(job).size() != (has_time ? 4u : 0u)) return Refuse(job, Status::kInvalid);
  if (has_time) {
    const Lifetime lifetime = LifetimeAt(job, 0);
    job.scratch.ttl = lifetime.ttl;
    job.scratch.over = lifetime.over;
  }
  UseKey(job, Key(job), has_time ? Access::kSteps : Access::kRead);
  job.Then(Retrieve);
}

// --- writes ---

void TakeCas(Job& job) {
  if (const uint64_t cas = Cas(job); cas != 0) job.scratch.put.only_if_version = cas;
}

void PrepareStorage(Job& job, uint8_t opcode) {
  if (Extras(job).size() != 8) return Refuse(job, Status::kInvalid);
  PutOptions& put = job.scratch.put;
  const Lifetime lifetime = LifetimeAt(job, 4);
  put.flags = static_cast<uint32_t>(BigEndian<4>(Extras(job)));
  put.ttl = lifetime.ttl;
  job.scratch.over = lifetime.over;
  TakeCas(job);
  put.only_if_absent = opcode == kAdd && !put.only_if_version;
  put.only_if_present = opcode == kReplace;
  job.counters->sets.Add();
  UseKey(job, Key(job), job.scratch.over ? Access::kSteps : Access::kWrite);
  job.Then(Store);
}

void PrepareExtension(Job& job, uint8_t opcode) {
  if (!Extras(job).empty()) return Refuse(job, Status::kInvalid);
  TakeCas(job);
  job.scratch.put.only_if_present = true;
  job.scratch.is_prefix = opcode == kPrepend;
  job.counters->sets.Add();
  UseKey(job, Key(job), Access::kSteps);
  job.Then(Extend);
}

void PrepareCount(Job& job, uint8_t opcode) {
  // With this as the expiry, a missing number is not created.
  constexpr uint64_t kNoInitial = 0xffffffff;
  if (Extras(job).size() != 20) return Refuse(job, Status::kInvalid);
  job.scratch.delta = BigEndian<8>(Extras(job));
  job.scratch.initial = BigEndian<8>(Extras(job).substr(8));
  job.scratch.creates = BigEndian<4>(Extras(job).substr(16)) != kNoInitial;
  if (job.scratch.creates) job.scratch.put.ttl = LifetimeAt(job, 16).ttl;
  job.scratch.is_subtraction = opcode == kDecrement;
  TakeCas(job);
  UseKey(job, Key(job), Access::kSteps);
  job.Then(Count);
}

void PrepareDelete(Job& job) {
  if (!Extras(job).empty()) return Refuse(job, Status::kInvalid);
  TakeCas(job);
  UseKey(job, Key(job), Access::kWrite);
  job.Then(Remove);
}

// --- the others ---

void Flushed(Job& job) {
  const std::string failed = FailedServers(job);
  if (failed.empty()) return Succeed(job);
  Refuse(job, Status::kTemporaryFailure,
         absl::StrCat("the other servers are flushed, but not ", failed));
}

void Flush(Job& job) {
  job.BeginOnEach(Kind::kFlush);
  job.Then(Flushed);
}

void PrepareFlush(Job& job) {
  const std::string_view extras = Extras(job);
  const bool at_once = extras.empty() || (extras.size() == 4 && BigEndian<4>(extras) == 0);
  if (!at_once) return Refuse(job, Status::kInvalid, "a flush cannot be delayed here");
  job.access = Access::kAll;
  job.Then(Flush);
}

void PrepareQuit(Job& job) {
  job.client->closing = true;
  Succeed(job);
}

// --- SASL ---

// PLAIN's data: whom to act for, the user and the password, with a zero between them.
void Authenticate(Job& job) {
  const std::string_view data = job.data();
  const size_t user = data.find('\0');
  const size_t password = user == data.npos ? user : data.find('\0', user + 1);
  job.client->authenticated =
      Key(job) == "PLAIN" && password != data.npos &&
      job.service->passwords->Fit(data.substr(user + 1, password - user - 1),
                                  data.substr(password + 1));
  if (!job.client->authenticated) return Refuse(job, Status::kNotAuthenticated);
  Answer(job, {.value = "Authenticated"});
}

// Handles the commands that are there if there are passwords, before one was given. Returns false
// if it is another one.
bool PrepareSasl(Job& job, uint8_t opcode) {
  switch (opcode) {
    case kSaslList:
      return Answer(job, {.value = "PLAIN"}), true;
    case kSaslAuth:
      return Authenticate(job), true;
    case kSaslStep:  // PLAIN has none
      return Refuse(job, Status::kNotAuthenticated), true;
    default:
      return false;
  }
}

void PrepareWithoutKey(Job& job, uint8_t opcode) {
  switch (opcode) {
    case kQuit:
      return PrepareQuit(job);
    case kFlush:
      return PrepareFlush(job);
    case kNoop:
    case kVerbosity:
      return Succeed(job);
    case kVersion:
      return Answer(job, {.value = job.service->version});
    case kStat:
      return PrepareStats(job);
    default:
      return Refuse(job, Status::kUnknownCommand);
  }
}

}  // namespace

void Fail(Job& job, const Operation& operation) {
  const Status status = operation.code == StatusCode::kResourceExhausted ? Status::kOutOfMemory
                        : operation.code == StatusCode::kInvalidArgument ||
                                operation.code == StatusCode::kPermissionDenied
                            ? Status::kInvalid
                        : operation.code == StatusCode::kOutOfRange ? Status::kTooLarge
                                                                    : Status::kTemporaryFailure;
  Refuse(job, status, StoreErrorText(operation));
}

void Conclude(Job& job, Ending ending) {
  const uint8_t opcode = PlainOpcode(OpcodeOf(job));
  switch (ending) {
    case Ending::kStored:
    case Ending::kDeleted:
    case Ending::kTouched:
      return Succeed(job, ending == Ending::kStored ? job.answer().info.version : 0);
    case Ending::kExists:
      return Refuse(job, Status::kExists);
    case Ending::kNotFound:
      return Refuse(job, Status::kNotFound);
    case Ending::kNotStored:
      return Refuse(job, opcode == kAdd       ? Status::kExists
                         : opcode == kReplace ? Status::kNotFound
                                              : Status::kNotStored);
  }
}

void CountDone(Job& job, std::string_view number, const ItemInfo& info) {
  uint64_t sum = 0;
  ParseNumber(number, &sum);
  std::string bytes;
  AppendBigEndian<8>(&bytes, sum);
  job.silent = IsQuiet(OpcodeOf(job));
  Answer(job, {.value = bytes, .cas = info.version});
}

void RefuseWrite(Job& job, bool is_too_large) {
  Refuse(job, is_too_large ? Status::kTooLarge : Status::kNotANumber);
}

void MakeStatsFrames(Job& job) {
  const std::string text = std::move(job.reply);
  job.reply.clear();
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find("\r\n", at);
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 2;
    if (!line.starts_with("STAT ")) continue;
    const size_t blank = line.find(' ', 5);
    Answer(job, {.key = line.substr(5, blank - 5), .value = line.substr(blank + 1)});
  }
  Answer(job, {});
}

void Prepare(Job& job) {
  job.scratch.is_binary = true;
  const uint8_t opcode = PlainOpcode(OpcodeOf(job));
  if (job.service->passwords != nullptr && PrepareSasl(job, opcode)) return;
  const bool before_auth = opcode == kQuit || opcode == kVersion;
  if (!job.client->authenticated && !before_auth) return Refuse(job, Status::kNotAuthenticated);
  const bool has_key = opcode <= kDecrement || opcode == kAppend || opcode == kPrepend ||
                       opcode == kTouch || opcode == kGat;
  if (!has_key) return PrepareWithoutKey(job, opcode);
  if (!KeyFits(job, Key(job))) return Refuse(job, Status::kInvalid);
  switch (opcode) {
    case kGet:
      return PrepareRetrieval(job, false);
    case kTouch:
    case kGat:
      return PrepareRetrieval(job, true);
    case kDelete:
      return PrepareDelete(job);
    case kIncrement:
    case kDecrement:
      return binary::PrepareCount(job, opcode);
    case kAppend:
    case kPrepend:
      return PrepareExtension(job, opcode);
    default:
      return binary::PrepareStorage(job, opcode);
  }
}

}  // namespace binary
}  // namespace memcached

void PrepareMemcachedBinary(Job& job) { memcached::binary::Prepare(job); }

}  // namespace gannet::proxy
