// Redis' commands about times to live.

#include <algorithm>
#include <ctime>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/protocol/limits.h"
#include "proxy/jobs/redis_commands.h"

namespace gannet::proxy::redis {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;
using std::chrono::milliseconds;

void FoundOne(Job& job) {
  if (job.answer().code != StatusCode::kOk) return Fail(job, job.answer());
  Reply(job).Integer(job.answer().found ? 1 : 0);
}

void Expire(Job& job) {
  job.Begin(job.scratch.over ? Kind::kDelete : Kind::kTouch, job.keys[0]).put.ttl = job.scratch.ttl;
  job.Then(FoundOne);
}

// --- EXPIRE NX, XX, GT, LT ---

void ReadToExpire(Job& job);

// Which of the conditions were given.
struct Conditions {
  bool nx = false;
  bool xx = false;
  bool gt = false;
  bool lt = false;
};

// Returns nullopt if the words are unknown, or contradict each other.
std::optional<Conditions> ConditionsOf(const Job& job) {
  Conditions given;
  for (size_t i = 3; i < job.words().size(); ++i) {
    const std::string word = Upper(job.words()[i]);
    bool* const one = word == "NX"   ? &given.nx
                      : word == "XX" ? &given.xx
                      : word == "GT" ? &given.gt
                      : word == "LT" ? &given.lt
                                     : nullptr;
    if (one == nullptr) return {};
    *one = true;
  }
  if ((given.nx && (given.xx || given.gt || given.lt)) || (given.gt && given.lt)) return {};
  return given;
}

// What is left of a time to live is known to a few milliseconds. Moments that are nearer than this
// count as the same, so that the moment that an item has is not greater.
constexpr milliseconds kSameMoment{50};

// For GT and LT, an item that never expires has an infinite time to live.
bool Holds(Conditions given, const ItemInfo& info, milliseconds ttl) {
  const bool expires = info.expiry_ms != 0;
  if ((given.nx && expires) || (given.xx && !expires)) return false;
  if (given.gt && (!expires || ttl <= info.ttl_left + kSameMoment)) return false;
  return !(given.lt && expires && ttl + kSameMoment >= info.ttl_left);
}

void ExpireWritten(Job& job) {
  if (job.answer().code == StatusCode::kFailedPrecondition && job.TryAgain()) {
    return ReadToExpire(job);
  }
  FoundOne(job);
}

void ExpireAfterRead(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk) return Fail(job, got);
  const milliseconds ttl = job.scratch.over ? milliseconds(0) : job.scratch.ttl;
  if (!got.found || !Holds(*ConditionsOf(job), got.info, ttl)) return Reply(job).Integer(0);
  const uint64_t version = got.info.version;
  Operation& write = job.Begin(job.scratch.over ? Kind::kDelete : Kind::kTouch, job.keys[0]);
  write.put.ttl = job.scratch.ttl;
  write.put.only_if_version = version;
  job.Then(ExpireWritten);
}

void ReadToExpire(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]).wants_value = false;
  job.Then(ExpireAfterRead);
}

// --- PERSIST ---

void PersistRead(Job& job);

void Persisted(Job& job) {
  if (job.answer().code == StatusCode::kFailedPrecondition && job.TryAgain()) {
    return PersistRead(job);
  }
  FoundOne(job);
}

void PersistAfterRead(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk) return Fail(job, got);
  if (!got.found || got.info.expiry_ms == 0) return Reply(job).Integer(0);
  const uint64_t version = got.info.version;
  job.Begin(Kind::kTouch, job.keys[0]).put.only_if_version = version;
  job.Then(Persisted);
}

void PersistRead(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]).wants_value = false;
  job.Then(PersistAfterRead);
}

}  // namespace

int64_t NowMs() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::optional<Unit> UnitOf(std::string_view option) {
  if (option == "EX") return Unit{true, false};
  if (option == "PX") return Unit{false, false};
  if (option == "EXAT") return Unit{true, true};
  if (option == "PXAT") return Unit{false, true};
  return {};
}

bool ParseInteger(std::string_view word, int64_t* number) {
  const std::string_view digits = word.starts_with('-') ? word.substr(1) : word;
  if (digits.starts_with('0') && word != "0") return false;
  return ParseNumber(word, number);
}

std::optional<int64_t> MsFromNow(Job& job, std::string_view word, Unit unit, Span span) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  int64_t number = 0;
  if (!ParseInteger(word, &number)) {
    Fail(job, kNoInteger);
    return {};
  }
  const int64_t now_ms = NowMs();
  const int64_t scale = unit.is_seconds ? 1000 : 1;
  // As in Redis, the moment itself has to fit.
  const int64_t most = (kMost - (unit.is_absolute ? 0 : now_ms)) / scale;
  if (number > most || number < -(kMost / scale) - (scale == 1) ||
      (span == Span::kForward && number <= 0)) {
    Fail(job, absl::StrCat("ERR invalid expire time in '",
                           absl::AsciiStrToLower(Upper(job.words()[0])), "' command"));
    return {};
  }
  const int64_t ms = number * scale;
  const int64_t from_now = !unit.is_absolute ? ms : ms > 0 ? ms - now_ms : -1;
  return std::min(from_now, static_cast<int64_t>(kTtlMsMax / 2));
}

void PrepareExpire(Job& job) {
  const std::string name = Upper(job.words()[0]);
  const auto ms =
      MsFromNow(job, job.words()[2], {name[0] == 'E', name.ends_with("AT")}, Span::kAny);
  if (!ms) return;
  if (!ConditionsOf(job)) {
    return Fail(job,
                "ERR NX and XX, GT or LT options at the same time are not compatible, or the "
                "option is unknown");
  }
  job.scratch.over = *ms <= 0;
  job.scratch.ttl = milliseconds(std::max<int64_t>(*ms, 1));
  const bool reads = job.words().size() > 3;
  if (reads) job.access = Access::kSteps;
  job.Then(reads ? ReadToExpire : Expire);
}

void PreparePersist(Job& job) { job.Then(PersistRead); }

}  // namespace gannet::proxy::redis
