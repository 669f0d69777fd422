#include "tools/kvload/trace.h"

#include <array>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tools/kvload/named_mix.h"
#include "tools/kvload/options.h"

namespace gannet::kvload {
namespace {

constexpr std::string_view kBlockHeader = "version,time,op,size,lbn";
constexpr uint64_t kTtlSecondsMax = uint64_t{100} * 365 * 86'400;

std::string_view WithoutCarriageReturn(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

template <size_t kFields>
std::optional<std::array<std::string_view, kFields>> Split(std::string_view line) {
  std::array<std::string_view, kFields> fields;
  for (size_t i = 0; i < kFields; ++i) {
    const size_t comma = line.find(',');
    const bool is_last = i + 1 == kFields;
    if ((comma == std::string_view::npos) != is_last) return std::nullopt;
    fields[i] = line.substr(0, comma);
    if (!is_last) line.remove_prefix(comma + 1);
  }
  return fields;
}

template <class T>
bool ParseNumber(std::string_view text, int base, T* out) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *out, base);
  return error == std::errc() && stopped == end;
}

absl::Status Bad(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

absl::Status ParseSize(std::string_view text, uint32_t size_max, uint32_t* size) {
  if (!ParseNumber(text, 10, size)) return Bad("bad size");
  if (*size <= size_max) return absl::OkStatus();
  return Bad(absl::StrCat("size ", *size, " is more than ", size_max));
}

absl::Status AddBlockLine(std::string_view line, const TraceLimits& limits,
                          std::vector<TraceEvent>* events) {
  const auto fields = Split<5>(line);
  if (!fields) return Bad("not five fields");
  TraceEvent event;
  uint32_t opcode = 0;
  uint64_t lbn = 0;
  if (!ParseNumber((*fields)[2], 16, &opcode)) return Bad("bad op");
  GANNET_RETURN_IF_ERROR(ParseSize((*fields)[3], limits.size_max, &event.size));
  if (!ParseNumber((*fields)[4], 10, &lbn)) return Bad("bad lbn");
  const bool is_read = opcode == 0x28 || opcode == 0x88;
  if (!is_read && opcode != 0x2a && opcode != 0x8a) {
    return Bad("op is neither a read (28, 88) nor a write (2a, 8a)");
  }
  event.key = absl::StrCat(lbn);
  event.kind = is_read ? OpKind::kGet : OpKind::kPut;
  event.put_on_miss = is_read;
  events->push_back(std::move(event));
  return absl::OkStatus();
}

absl::Status AddTwitterLine(std::string_view line, const TraceLimits& limits,
                            std::vector<TraceEvent>* events) {
  const auto fields = Split<7>(line);
  if (!fields) return Bad("not seven fields");
  const auto& [time, key, key_size, value_size, client, operation, ttl] = *fields;
  TraceEvent event{.key = std::string(key)};
  if (key.empty() || key.size() > kKeyBytesMax) {
    return Bad(absl::StrCat("a key of ", key.size(), " bytes"));
  }
  uint32_t real_key_bytes = 0;
  if (!ParseNumber(key_size, 10, &real_key_bytes)) return Bad("bad key size");
  GANNET_RETURN_IF_ERROR(ParseSize(value_size, limits.size_max, &event.size));
  const std::optional<OpKind> kind = KindOf(operation);
  if (!kind || *kind == OpKind::kRmw) {
    return Bad(absl::StrCat("no operation '", std::string(operation), "'"));
  }
  uint64_t ttl_seconds = 0;
  if (!ParseNumber(ttl, 10, &ttl_seconds) || ttl_seconds > kTtlSecondsMax) return Bad("bad TTL");
  event.kind = *kind;
  event.put_on_miss = *kind == OpKind::kGet && event.size > 0;
  event.ttl = std::chrono::seconds(ttl_seconds);
  if (OwnKeys(*kind)) event.key[0] = FirstLetterOfOwnKey(*kind);
  events->push_back(std::move(event));
  return absl::OkStatus();
}

absl::Status AddMooncakeLine(std::string_view line, const TraceLimits& limits,
                             std::vector<TraceEvent>* events) {
  const nlohmann::json request = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto ids = request.is_object() ? request.find("hash_ids") : request.end();
  if (!request.is_object() || ids == request.end() || !ids->is_array()) {
    return Bad("no JSON object with an array \"hash_ids\"");
  }
  for (const nlohmann::json& id : *ids) {
    if (!id.is_number_unsigned()) return Bad("a hash id is no number");
    events->push_back({.key = absl::StrCat(id.get<uint64_t>()),
                       .size = limits.block_bytes,
                       .kind = OpKind::kGet,
                       .put_on_miss = true});
  }
  return absl::OkStatus();
}

struct Format {
  absl::Status (*add_line)(std::string_view line, const TraceLimits& limits,
                           std::vector<TraceEvent>* events);
  bool has_header = false;
};

std::optional<Format> FormatOf(std::string_view first_line) {
  if (first_line == kBlockHeader) return Format{&AddBlockLine, true};
  if (first_line.starts_with('{')) return Format{&AddMooncakeLine};
  if (Split<7>(first_line)) return Format{&AddTwitterLine};
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<TraceEvent>> ReadTrace(std::istream& in, const TraceLimits& limits) {
  std::string line;
  std::getline(in, line);
  const std::optional<Format> format = FormatOf(WithoutCarriageReturn(line));
  if (!format) {
    return absl::InvalidArgumentError(absl::StrCat(
        "line 1: no trace that kvload knows: a block trace begins with '",
        std::string(kBlockHeader),
        "', a line of Twitter's has seven fields, and one of Mooncake's is a JSON object"));
  }
  std::vector<TraceEvent> events;
  for (size_t number = 1; in; ++number, std::getline(in, line)) {
    if (number == 1 && format->has_header) continue;
    const absl::Status added = format->add_line(WithoutCarriageReturn(line), limits, &events);
    if (!added.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", added.message()));
    }
  }
  return events;
}

absl::StatusOr<std::vector<TraceEvent>> ReadTraceFile(const std::string& path,
                                                      const TraceLimits& limits) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open the trace ", path));
  auto events = ReadTrace(file, limits);
  if (!events.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", events.status().message()));
  }
  return events;
}

}  // namespace gannet::kvload
