#ifndef GANNET_PROXY_JOBS_PASSWORDS_H_
#define GANNET_PROXY_JOBS_PASSWORDS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace gannet::proxy {

// Who may use the proxy. Without a file everybody may.
//
// Thread safety: const, so all methods may be called from any thread.
class Passwords {
 public:
  // Everybody may.
  Passwords() = default;
  // Reads lines of PASSWORD or USER PASSWORD. A password alone is that of the user "default".
  // InvalidArgument: there is no such file, others may read it, or a line is wrong.
  static absl::StatusOr<Passwords> Read(const std::string& path);

  bool wanted() const { return !all_.empty(); }
  bool Fit(std::string_view user, std::string_view password) const;

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_PASSWORDS_H_
