#ifndef GANNET_COMMON_CLUSTER_JSON_FIELDS_H_
#define GANNET_COMMON_CLUSTER_JSON_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace gannet {

// Up to here other readers of JSON are exact.
inline constexpr uint64_t kJsonNumberMax = uint64_t{1} << 53;

// Takes the fields of a JSON object one by one. Remembers the first thing that is wrong, and gives
// zeros and empty values from then on, so that a decoder looks once, at its end.
class JsonFields {
 public:
  // `what` names the object in messages: "group".
  JsonFields(std::string_view text, std::string what);
  JsonFields(nlohmann::json json, std::string what);

  // Up to kJsonNumberMax.
  uint64_t Number(const char* name);
  uint32_t Number32(const char* name);
  // 16 hexadecimal digits in a string.
  uint64_t Hex(const char* name);
  std::string Text(const char* name);
  bool Bool(const char* name);
  nlohmann::json Array(const char* name, size_t size_max);
  // An object, or null.
  nlohmann::json ObjectOrNull(const char* name);
  // Takes all fields that are left. Each must be a string.
  std::map<std::string, std::string> OtherTexts(size_t size_max);

  void Fail(const std::string& problem);
  // Returns what was wrong. A field that nobody took is.
  absl::Status Finish();

 private:
  nlohmann::json Take(const char* name);

  const std::string what_;
  nlohmann::json json_;
  absl::Status status_;
};

// Returns 16 hexadecimal digits.
std::string HexOf(uint64_t number);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_JSON_FIELDS_H_
