#include "tests/linearizability/history_file.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace gannet::linearizability {
namespace {

std::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kGet:
      return "get";
    case Kind::kPut:
      return "put";
    case Kind::kDelete:
      return "delete";
    case Kind::kCompareAndSet:
      return "compare_and_set";
    case Kind::kReplace:
      return "replace";
    case Kind::kCompareAndDelete:
      return "compare_and_delete";
    case Kind::kClear:
      return "clear";
  }
  return "";
}

std::string_view NameOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return "done";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kUnknown:
      return "unknown";
  }
  return "";
}

std::string OrNull(uint64_t value, bool is_null) { return is_null ? "null" : absl::StrCat(value); }

}  // namespace

void WriteHistory(std::string_view key, std::span<const Operation> history, std::ostream* to) {
  for (const Operation& op : history) {
    const bool unknown = op.outcome == Outcome::kUnknown;
    const int64_t end_ns = unknown ? op.until_ns : op.respond_ns;
    *to << R"({"key":")" << key << R"(","client":)" << op.client << R"(,"operation":")"
        << NameOf(op.kind) << R"(","value":)" << OrNull(op.value, op.value == kAbsent)
        << R"(,"expected":)" << OrNull(op.expected, op.expected == kAbsent) << R"(,"found":)"
        << (op.found ? "true" : "false") << R"(,"outcome":")" << NameOf(op.outcome)
        << R"(","call_ns":)" << op.invoke_ns << R"(,"return_ns":)"
        << OrNull(static_cast<uint64_t>(end_ns), end_ns == kNever) << "}\n";
  }
}

}  // namespace gannet::linearizability
