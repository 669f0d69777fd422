// Shell: values that come from a file or go into one.

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/kvcli/shell.h"

namespace gannet::kvcli {

namespace {

// Stops behind the longest value, so that an endless file is refused as too long.
std::string ReadValue(std::ifstream& file) {
  std::string bytes;
  char block[65536];
  while (bytes.size() <= kValueBytesMax && file) {
    file.read(block, sizeof(block));  // at an error it sets badbit; an iterator would throw
    bytes.append(block, static_cast<size_t>(file.gcount()));
  }
  return bytes;
}

}  // namespace

int Shell::PutFile(const Command& command) {
  std::ifstream file(command.file, std::ios::binary);
  Command put = command;
  put.file.clear();
  put.value = ReadValue(file);
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
