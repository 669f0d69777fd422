// memcached's meta commands: mg, ms, md, ma, mn, me. Their flags are single letters, some with a
// token behind. Flags for times of last use are refused by name, because the store does not keep
// those.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proxy/jobs/memcached_commands.h"

namespace gannet::proxy::memcached {
namespace {

using Kind = Operation::Kind;

std::span<const std::string_view> Flags(const Job& job) {
  const size_t first = std::min<size_t>(job.words()[0] == "ms" ? 3 : 2, job.words().size());
  return std::span(job.words()).subspan(first);
}

// Returns the flag's token, or nullopt if it was not given.
std::optional<std::string_view> Token(const Job& job, char flag) {
  for (const std::string_view given : Flags(job)) {
    if (given[0] == flag) return given.substr(1);
  }
  return {};
}

bool Has(const Job& job, char flag) { return Token(job, flag).has_value(); }

void Refuse(Job& job, std::string_view why) {
  job.reply.assign("CLIENT_ERROR ").append(why).append("\r\n");
  job.next = nullptr;
}

// Writes what the flags ask for, in the order in which they were given.
void AppendAsked(Job& job, const ItemInfo& info, size_t bytes) {
  for (const std::string_view given : Flags(job)) {
    switch (given[0]) {
      case 'k':
        job.reply.append(" k").append(job.words()[1]);
        break;
      case 'O':
      case 'b':
        job.reply.append(" ").append(given);
        break;
      case 'c':
        job.reply += absl::StrCat(" c", info.version);
        break;
      case 'f':
        job.reply += absl::StrCat(" f", info.flags);
        break;
      case 's':
        job.reply += absl::StrCat(" s", bytes);
        break;
      case 't':
        job.reply += " t";
        job.reply += info.expiry_ms == 0 ? "-1" : std::to_string(info.ttl_left.count() / 1000);
        break;
      default:
        break;
    }
  }
  job.reply += "\r\n";
}

void AppendIdentity(Job& job) {
  for (const std::string_view given : Flags(job)) {
    if (given[0] == 'k') job.reply.append(" k").append(job.words()[1]);
    if (given[0] == 'O' || given[0] == 'b') job.reply.append(" ").append(given);
  }
  job.reply += "\r\n";
}

// --- mg, me ---

void MetaGot(Job& job) {
  const Operation& got = job.answer();
  if (got.code != absl::StatusCode::kOk) return Fail(job, got);
  job.counters->gets.Add();
  if (!got.found) {
    job.silent = Has(job, 'q');
    job.reply += "EN";
    return AppendIdentity(job);
  }
  job.counters->hits.Add();
  const bool with_value = Has(job, 'v');
  job.reply += with_value ? absl::StrCat("VA ", got.info.value_bytes) : "HD";
  AppendAsked(job, got.info, got.info.value_bytes);
  if (with_value) job.reply.append(got.found_value()).append("\r\n");
}

void MetaGet(Job& job) {
  const Kind kind = job.scratch.keeps_ttl ? Kind::kGetAndTouch : Kind::kGet;
  Operation& get = job.Begin(kind, job.keys[0]);
  get.put.ttl = job.scratch.ttl;
  get.wants_value = Has(job, 'v');
  job.Then(MetaGot);
}

void Described(Job& job) {
  const Operation& got = job.answer();
  if (got.code != absl::StatusCode::kOk) return Fail(job, got);
  if (!got.found) {
    job.reply += "EN\r\n";
    return;
  }
  job.reply.append("ME ").append(job.words()[1]);
  job.reply +=
      absl::StrCat(" exp=", got.info.expiry_ms == 0 ? -1 : got.info.ttl_left.count() / 1000,
                   " cas=", got.info.version, " size=", got.info.value_bytes, "\r\n");
}

void Describe(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]).wants_value = false;
  job.Then(Described);
}

// --- what the flags mean ---

template <class Number>
bool TakeNumber(Job& job, char flag, Number* number) {
  const auto token = Token(job, flag);
  if (!token || ParseNumber(*token, number)) return true;
  Refuse(job, "bad token in command line format");
  return false;
}

// T is the new time to live. N of ma is that of an item that it makes, for which the last one of
// both counts, as in memcached.
bool TakeTimes(Job& job) {
  for (const std::string_view given : Flags(job)) {
    const char flag = given[0];
    if (flag != 'T' && flag != 'N') continue;
    const auto lifetime = Exptime(given.substr(1));
    if (!lifetime) {
      Refuse(job, "bad token in command line format");
      return false;
    }
    job.scratch.put.ttl = lifetime->ttl;
    if (flag == 'N') {
      job.scratch.creates = true;
      continue;
    }
    job.scratch.ttl = job.scratch.wanted_ttl = lifetime->ttl;
    job.scratch.over = lifetime->over;
    job.scratch.keeps_ttl = true;
  }
  return true;
}

bool TakeCommon(Job& job, std::string_view known) {
  for (const std::string_view given : Flags(job)) {
    if (known.find(given[0]) != std::string_view::npos) continue;
    Refuse(job, absl::StrCat("flag ", std::string(1, given[0]), " is not supported"));
    return false;
  }
  uint64_t version = 0;
  if (!TakeNumber(job, 'C', &version) || !TakeTimes(job)) return false;
  if (Has(job, 'C')) job.scratch.put.only_if_version = version == 0 ? UINT64_MAX : version;
  return true;
}

// With b, the key is in base64.
bool TakeKey(Job& job) {
  std::string_view key = job.words()[1];
  if (Has(job, 'b')) {
    std::string decoded;
    if (!absl::Base64Unescape(std::string(key), &decoded)) {
      Refuse(job, "error decoding key");
      return false;
    }
    key = job.KeepKey(std::move(decoded));
  }
  if (KeyFits(job, key)) {
    UseKey(job, key, Access::kSteps);
    return true;
  }
  job.reply = kBadLine;
  return false;
}

void PrepareMg(Job& job) {
  if (!TakeCommon(job, "bcfkOqstvT")) return;
  if (job.scratch.over) return Refuse(job, "T must not be negative here");
  if (!job.scratch.keeps_ttl) job.access = Access::kRead;
  job.Then(MetaGet);
}

void PrepareMs(Job& job) {
  if (!job.has_data()) {
    job.reply = kBadLine;
    return;
  }
  if (!TakeCommon(job, "bcCFkOqsTM")) return;
  PutOptions& put = job.scratch.put;
  if (!TakeNumber(job, 'F', &put.flags)) return;
  const std::string_view mode = Token(job, 'M').value_or("S");
  const char first = mode.empty() ? '?' : mode[0];
  constexpr std::string_view kModes = "SsEeAaPpRr";
  if (kModes.find(first) == std::string_view::npos) return Refuse(job, "invalid mode for ms");
  const char letter = static_cast<char>(first & ~0x20);
  put.only_if_absent = letter == 'E';
  put.only_if_present = letter == 'R' || letter == 'A' || letter == 'P';
  job.scratch.is_prefix = letter == 'P';
  if (put.only_if_version) put.only_if_absent = false;
  if (put.only_if_version && letter == 'R') put.only_if_present = false;
  job.counters->sets.Add();
  job.Then(letter == 'A' || letter == 'P' ? Extend : Store);
}

void PrepareMd(Job& job) {
  if (!TakeCommon(job, "bCkOq")) return;
  job.Then(Remove);
}

void PrepareMa(Job& job) {
  if (!TakeCommon(job, "bCNJDTMqtcvkO")) return;
  job.scratch.delta = 1;
  if (!TakeNumber(job, 'D', &job.scratch.delta) || !TakeNumber(job, 'J', &job.scratch.initial)) {
    return;
  }
  const std::string_view mode = Token(job, 'M').value_or("I");
  constexpr std::string_view kModes = "Ii+Dd-";
  if (mode.empty() || kModes.find(mode[0]) == std::string_view::npos) {
    return Refuse(job, "invalid mode for ma");
  }
  job.scratch.asks_ttl = Has(job, 't');
  job.scratch.is_subtraction = mode[0] == 'D' || mode[0] == 'd' || mode[0] == '-';
  job.Then(Count);
}

}  // namespace

void ConcludeMeta(Job& job, Ending ending) {
  const bool quiet = Has(job, 'q');
  switch (ending) {
    case Ending::kStored:
      job.silent = quiet;
      job.reply += "HD";
      return AppendAsked(job, job.answer().info, job.data().size());
    case Ending::kDeleted:
    case Ending::kTouched:
      job.silent = quiet;
      job.reply += "HD";
      break;
    case Ending::kNotStored:
      job.reply += "NS";
      break;
    case Ending::kExists:
      job.reply += "EX";
      break;
    case Ending::kNotFound:
      job.silent = quiet && job.words()[0] != "ms";
      job.reply += "NF";
      break;
  }
  AppendIdentity(job);
}

void CountDoneMeta(Job& job, std::string_view number, const ItemInfo& info) {
  job.silent = Has(job, 'q');
  const bool with_value = Has(job, 'v');
  job.reply += with_value ? absl::StrCat("VA ", number.size()) : "HD";
  AppendAsked(job, info, number.size());
  if (with_value) job.reply.append(number).append("\r\n");
}

bool PrepareMeta(Job& job) {
  const std::string_view name = job.words()[0];
  constexpr std::string_view kNames[] = {"mg", "ms", "md", "ma", "me", "mn"};
  if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) return false;
  job.scratch.is_meta = true;
  if (name == "mn") {
    job.reply = "MN\r\n";
  } else if (job.words().size() < 2) {
    job.reply = kError;
  } else if (TakeKey(job)) {
    if (name == "mg") PrepareMg(job);
    if (name == "ms") PrepareMs(job);
    if (name == "md") PrepareMd(job);
    if (name == "ma") PrepareMa(job);
    if (name == "me") job.Then(Describe);
  }
  return true;
}

}  // namespace gannet::proxy::memcached
