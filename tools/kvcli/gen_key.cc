#include "tools/kvcli/gen_key.h"

#include "absl/strings/str_cat.h"
#include "common/auth/new_auth_key.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {

std::string KeyText(const Command& command, bool json) {
  const AuthKey key = NewAuthKey(command.id, command.read_only, command.replica);
  if (!json) return absl::StrCat(LineOf(key), "\n");
  const Json parts = {
      {"id", key.id}, {"key", HexOf(key)}, {"read_only", key.read_only}, {"replica", key.replica}};
  return parts.dump() + "\n";
}

}  // namespace gannet::kvcli
