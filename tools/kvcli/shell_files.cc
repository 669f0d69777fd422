// Shell: values that come from a file or go into one.

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/kvcli/shell.h"

namespace gannet::kvcli {

int Shell::PutFile(const Command& command) {
  std::ifstream file(command.file, std::ios::binary);
  Command put = command;
  put.file.clear();
  put.value.assign(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || file.bad()) {
    return Report(absl::NotFoundError(
        absl::StrCat("cannot read ", command.file, ": ", std::strerror(errno))));
  }
  return Put(put);
}

int Shell::WriteOut(const Command& command, const Value& value) {
  std::ofstream file(command.out, std::ios::binary | std::ios::trunc);
  file.write(value.data.data(), static_cast<std::streamsize>(value.data.size()));
  file.close();
  if (!file) {
    return Report(absl::UnavailableError(
        absl::StrCat("cannot write ", command.out, ": ", std::strerror(errno))));
  }
  if (options_.json) ShowItem(command.keys[0], value, /*meta=*/true);
  return kExitDone;
}

}  // namespace gannet::kvcli
