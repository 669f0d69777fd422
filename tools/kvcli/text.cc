#include "tools/kvcli/text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "absl/strings/str_format.h"

namespace gannet::kvcli {
namespace {

// Returns the bytes of the character that `rest` begins with, or 0 if it is ill-formed.
size_t Utf8Length(std::string_view rest) {
  const auto byte = [rest](size_t i) -> unsigned {
    return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0;
  };
  const auto continues = [byte](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) > 0x9f;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool beyond = first == 0xf4 && byte(1) > 0x8f;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

}  // namespace

void Say(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

std::string TimeText(uint64_t seconds) {
  constexpr uint64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  if (seconds < kMinute) return absl::StrFormat("%u s", seconds);
  if (seconds < kHour) return absl::StrFormat("%u min %u s", seconds / kMinute, seconds % kMinute);
  if (seconds < kDay) {
    return absl::StrFormat("%u h %u min", seconds / kHour, seconds % kHour / kMinute);
  }
  return absl::StrFormat("%u d %u h", seconds / kDay, seconds % kDay / kHour);
}

std::string Base64(std::string_view bytes) {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < n ? static_cast<unsigned char>(bytes[i + j]) : 0);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= n ? kAlphabet[(group >> (18 - 6 * j)) & 63] : '=';
    }
  }
  return text;
}

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t n = Utf8Length(bytes);
    if (n == 0) return false;
    bytes.remove_prefix(n);
  }
  return true;
}

std::string Escaped(std::string_view bytes) {
  const auto plain = [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != 0x7f && c != '"' && c != '\'' && c != '\\';
  };
  const bool text = IsUtf8(bytes);
  if (text && !bytes.empty() && bytes[0] != '#' && std::ranges::all_of(bytes, plain)) {
    return std::string(bytes);
  }
  std::string word = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = byte < ' ' || byte == 0x7f;
    if (c == '"' || c == '\\') {
      word += '\\';
      word += c;
    } else if (control || (!text && byte >= 0x80)) {
      word += absl::StrFormat("\\x%02x", byte);
    } else {
      word += c;
    }
  }
  return word + '"';
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json ErrorJson(std::string_view name, std::string_view message) {
  return {{"error", name}, {"message", message}};
}

void AddBytes(std::string_view name, std::string_view bytes, bool always_base64, Json& object) {
  const bool is_text = IsUtf8(bytes);
  if (is_text) object[std::string(name)] = bytes;
  if (!is_text || always_base64) object[std::string(name) + "_base64"] = Base64(bytes);
}

Json KeyJson(std::string_view key) {
  Json json = Json::object();
  AddBytes("key", key, false, json);
  return json;
}

void Complain(std::string_view text) {
  std::fprintf(stderr, "kvcli: %.*s\n", static_cast<int>(text.size()), text.data());
}

std::string Seconds(std::chrono::milliseconds time) {
  return absl::StrFormat("%d.%03d", time.count() / 1000, time.count() % 1000);
}

}  // namespace gannet::kvcli
