#include "common/cluster/json_fields.h"

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/etcd/etcd_error.h"

namespace gannet {
namespace {

using Json = nlohmann::json;

constexpr size_t kHexDigits = 16;

}  // namespace

JsonFields::JsonFields(std::string_view text, std::string what)
    : JsonFields(Json::parse(text, nullptr, /*allow_exceptions=*/false), std::move(what)) {}

JsonFields::JsonFields(Json json, std::string what)
    : what_(std::move(what)), json_(std::move(json)) {
  if (json_.is_object()) return;
  Fail(json_.is_discarded() ? "no JSON" : "no JSON object");
  json_ = Json::object();
}

Json JsonFields::Take(const char* name) {
  const auto found = json_.find(name);
  if (found == json_.end()) {
    Fail(absl::StrCat("no ", name));
    return nullptr;
  }
  Json value = std::move(*found);
  json_.erase(found);
  return value;
}

uint64_t JsonFields::Number(const char* name) {
  const Json value = Take(name);
  if (value.is_number_unsigned() && value.get<uint64_t>() <= kJsonNumberMax) {
    return value.get<uint64_t>();
  }
  Fail(absl::StrCat(name, " is no number from 0 to 2^53"));
  return 0;
}

uint32_t JsonFields::Number32(const char* name) {
  const uint64_t value = Number(name);
  if (value <= std::numeric_limits<uint32_t>::max()) return static_cast<uint32_t>(value);
  Fail(absl::StrCat(name, " is too large"));
  return 0;
}

uint64_t JsonFields::Hex(const char* name) {
  const std::string digits = Text(name);
  uint64_t number = 0;
  bool valid = digits.size() == kHexDigits;
  for (const char c : digits) {
    valid = valid && absl::ascii_isxdigit(static_cast<unsigned char>(c)) &&
            !absl::ascii_isupper(static_cast<unsigned char>(c));
  }
  if (valid && absl::SimpleHexAtoi(digits, &number)) return number;
  Fail(absl::StrCat(name, " is not 16 hexadecimal digits"));
  return 0;
}

std::string JsonFields::Text(const char* name) {
  Json value = Take(name);
  if (value.is_string()) return std::move(value.get_ref<std::string&>());
  Fail(absl::StrCat(name, " is no string"));
  return "";
}

bool JsonFields::Bool(const char* name) {
  const Json value = Take(name);
  if (value.is_boolean()) return value.get<bool>();
  Fail(absl::StrCat(name, " is neither true nor false"));
  return false;
}

Json JsonFields::Array(const char* name, size_t size_max) {
  Json value = Take(name);
  if (value.is_array() && value.size() <= size_max) return value;
  Fail(absl::StrCat(name, " is no array of at most ", size_max));
  return Json::array();
}

Json JsonFields::ObjectOrNull(const char* name) {
  Json value = Take(name);
  if (value.is_object() || value.is_null()) return value;
  Fail(absl::StrCat(name, " is neither an object nor null"));
  return nullptr;
}

std::map<std::string, std::string> JsonFields::OtherTexts(size_t size_max) {
  std::map<std::string, std::string> texts;
  if (json_.size() > size_max) {
    Fail(absl::StrCat("more than ", size_max, " fields"));
    return texts;
  }
  for (const auto& [name, value] : json_.items()) {
    if (value.is_string()) {
      texts[name] = value.get<std::string>();
    } else {
      Fail(absl::StrCat(Printable(name), " is no string"));
    }
  }
  json_ = Json::object();
  return texts;
}

void JsonFields::Fail(const std::string& problem) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(what_, ": ", problem));
}

absl::Status JsonFields::Finish() {
  if (!json_.empty()) {
    Fail(absl::StrCat("a field that this version does not know: ", Printable(json_.begin().key())));
  }
  return status_;
}

std::string HexOf(uint64_t number) { return absl::StrFormat("%016x", number); }

}  // namespace gannet
