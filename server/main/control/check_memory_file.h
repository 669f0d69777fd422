#ifndef GANNET_SERVER_MAIN_CONTROL_CHECK_MEMORY_FILE_H_
#define GANNET_SERVER_MAIN_CONTROL_CHECK_MEMORY_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace gannet {

using ReportLine = std::pair<const char*, uint64_t>;
// Returns lines of a name and a number, or a line of JSON.
std::string RenderReport(std::span<const ReportLine> lines, bool json);

// Looks through a memory file that no server uses, or a copy of one, and changes nothing. Prints
// what is there, as lines or as JSON. Returns what is wrong, and does not print it. DataLoss: items
// are damaged, so a start would drop them.
absl::Status CheckMemoryFile(const std::string& path, bool json);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_CHECK_MEMORY_FILE_H_
