#ifndef GANNET_COMMON_AUTH_PARSE_AUTH_KEYS_H_
#define GANNET_COMMON_AUTH_PARSE_AUTH_KEYS_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/auth/auth_key.h"

namespace gannet {

inline constexpr size_t kAuthKeysMax = 256;

// Parses the text of an auth file, which is called `name` in errors. Each line is
//
//   ID HEXKEY [read | replica]    # comment
//
// ID is a number from 1 to 2^32 - 1, HEXKEY are the secret's bytes in hexadecimal, and a key with
// "read" may only read. A key with "replica" is for the servers of a group; for a client it is a
// key that may only read. Empty lines are left out. Returns the keys in the order of their lines.
//
// InvalidArgument, with the number of the line: it is no such line, a secret is too short or too
// long, or an id is 0 or double. Also if there is no key, or more than kAuthKeysMax. No error has a
// part of a secret in its text.
absl::StatusOr<std::vector<AuthKey>> ParseAuthKeys(std::string_view text, std::string_view name);

}  // namespace gannet

#endif  // GANNET_COMMON_AUTH_PARSE_AUTH_KEYS_H_
