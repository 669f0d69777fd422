#ifndef GANNET_PROXY_JOBS_DATABASE_H_
#define GANNET_PROXY_JOBS_DATABASE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/layout/item.h"

namespace gannet::proxy {

// One of the databases of Redis' SELECT. The store has none, so the key tells which one it is in:
//
//   database 0    NAME
//   database N    "\0db", a byte N, NAME
//
// If there are several databases, names in database 0 do not begin with "\0db". So no key is in two
// databases, and keys of a database that this proxy does not have are in none of its own.
struct Database {
  static constexpr std::string_view kMark{"\0db", 3};
  static constexpr size_t kPrefixBytes = kMark.size() + 1;
  static constexpr uint32_t kCountMax = 256;

  uint8_t number = 0;
  bool is_only = true;  // there is only database 0, and all keys are in it

  size_t prefix_bytes() const { return number == 0 ? 0 : kPrefixBytes; }
  size_t name_bytes_max() const { return kKeyBytesMax - prefix_bytes(); }
  bool IsReserved(std::string_view name) const {
    return number == 0 && !is_only && name.starts_with(kMark);
  }
  bool MayHave(std::string_view name) const {
    return !name.empty() && name.size() <= name_bytes_max() && !IsReserved(name);
  }
  // Returns the key of this name in the store. REQUIRES: it has a prefix.
  std::string KeyOf(std::string_view name) const {
    GANNET_CHECK(number > 0, "names in database 0 are keys");
    std::string key(kMark);
    key += static_cast<char>(number);
    return key.append(name);
  }
  // Returns the name of the store's key, if the key is in this database.
  std::optional<std::string_view> NameOf(std::string_view key) const {
    if (number == 0) {
      if (IsReserved(key)) return {};
      return key;
    }
    const bool is_in = key.size() > kPrefixBytes && key.starts_with(kMark) &&
                       static_cast<uint8_t>(key[kMark.size()]) == number;
    if (!is_in) return {};
    return key.substr(kPrefixBytes);
  }
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_DATABASE_H_
