#include "proxy/jobs/passwords.h"

#include <openssl/crypto.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gannet::proxy {
namespace {

constexpr char kDefaultUser[] = "default";

}  // namespace

absl::StatusOr<Passwords> Passwords::Read(const std::string& path) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("--password_file=", path, ": ", what));
  };
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return wrong(std::strerror(errno));
  if ((status.st_mode & S_IRWXO) != 0) return wrong("others may read it: chmod o= it");
  std::ifstream file(path);
  if (!file) return wrong("it cannot be read");
  Passwords passwords;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty() || words.size() > 2) return wrong("a line is PASSWORD or USER PASSWORD");
    passwords.all_.emplace_back(words.size() == 2 ? words[0] : kDefaultUser, words.back());
  }
  if (!passwords.wanted()) return wrong("it has no password");
  return passwords;
}

// How long it takes does not tell how much of a password is right.
bool Passwords::Fit(std::string_view user, std::string_view password) const {
  bool any = false;
  for (const auto& [name, right] : all_) {
    const bool is_same = right.size() == password.size() &&
                         CRYPTO_memcmp(right.data(), password.data(), right.size()) == 0;
    any = any || (name == user && is_same);
  }
  return any;
}

}  // namespace gannet::proxy
