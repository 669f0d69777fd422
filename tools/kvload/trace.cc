#include "tools/kvload/trace.h"

#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gannet::kvload {
namespace {

constexpr std::string_view kHeader = "version,time,op,size,lbn";
constexpr size_t kFields = 5;

std::string_view WithoutCarriageReturn(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

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

absl::StatusOr<TraceEvent> ParseLine(std::string_view line, uint32_t size_max) {
  const auto fields = Split(line);
  if (!fields) return absl::InvalidArgumentError("not five fields");
  TraceEvent event;
  uint32_t opcode = 0;
  if (!ParseNumber((*fields)[2], 16, &opcode)) return absl::InvalidArgumentError("bad op");
  if (!ParseNumber((*fields)[3], 10, &event.size)) return absl::InvalidArgumentError("bad size");
  if (!ParseNumber((*fields)[4], 10, &event.lbn)) return absl::InvalidArgumentError("bad lbn");
  if (event.size > size_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("size ", event.size, " is more than ", size_max));
  }
  switch (opcode) {
    case 0x28:
    case 0x88:
      event.is_read = true;
      return event;
    case 0x2a:
    case 0x8a:
      event.is_read = false;
      return event;
    default:
      return absl::InvalidArgumentError("op is neither a read (28, 88) nor a write (2a, 8a)");
  }
}

}  // namespace

absl::StatusOr<std::vector<TraceEvent>> ReadTrace(std::istream& in, uint32_t size_max) {
  std::string line;
  if (!std::getline(in, line) || WithoutCarriageReturn(line) != kHeader) {
    return absl::InvalidArgumentError(
        absl::StrCat("line 1: a trace begins with '", std::string(kHeader), "'"));
  }
  std::vector<TraceEvent> events;
  for (size_t number = 2; std::getline(in, line); ++number) {
    auto event = ParseLine(WithoutCarriageReturn(line), size_max);
    if (!event.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", event.status().message()));
    }
    events.push_back(*event);
  }
  return events;
}

absl::StatusOr<std::vector<TraceEvent>> ReadTraceFile(const std::string& path, uint32_t size_max) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open the trace ", path));
  auto events = ReadTrace(file, size_max);
  if (!events.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", events.status().message()));
  }
  return events;
}

}  // namespace gannet::kvload
