#ifndef GANNET_TOOLS_KVLOAD_TRACE_H_
#define GANNET_TOOLS_KVLOAD_TRACE_H_

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gannet::kvload {

// One request of a block-storage trace.
struct TraceEvent {
  uint64_t lbn = 0;
  uint32_t size = 0;
  bool is_read = false;
};

// Reads a trace in CSV: a header line "version,time,op,size,lbn", then a line per request. `op` is
// a SCSI opcode in hexadecimal: 28 and 88 read, 2a and 8a write. `size` is in bytes, and `lbn` is
// the logical block number. Ignores time and version: a replay is as fast as possible.
//
// InvalidArgument, with the line: the header or an opcode is unknown, a field is missing or not a
// number, or a size exceeds `size_max`.
absl::StatusOr<std::vector<TraceEvent>> ReadTrace(std::istream& in, uint32_t size_max);

// NotFound: the file cannot be opened.
absl::StatusOr<std::vector<TraceEvent>> ReadTraceFile(const std::string& path, uint32_t size_max);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_TRACE_H_
