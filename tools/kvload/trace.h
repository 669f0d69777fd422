#ifndef GANNET_TOOLS_KVLOAD_TRACE_H_
#define GANNET_TOOLS_KVLOAD_TRACE_H_

#include <chrono>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/kvload/operation.h"

namespace gannet::kvload {

// One operation of a trace.
struct TraceEvent {
  std::string key;
  uint32_t size = 0;  // of the value
  OpKind kind = OpKind::kGet;
  bool put_on_miss = false;          // of a GET
  std::chrono::milliseconds ttl{0};  // of what it writes; 0: as the run says
};

struct TraceLimits {
  uint32_t size_max = 0;     // no value is longer
  uint32_t block_bytes = 0;  // of a block in Mooncake's format, which does not tell it
};

// Reads a trace. Its first line tells which of these formats it has:
//
// - A block-storage trace, CSV with the header "version,time,op,size,lbn". `op` is a SCSI opcode in
//   hexadecimal: 28 and 88 read, 2a and 8a write. `size` is in bytes, and `lbn`, the logical block
//   number, is the key. A PUT follows a read that misses.
// - Twitter's cache traces (twitter/cache-trace), CSV without a header: timestamp, anonymized key,
//   key size, value size, client id, operation, TTL in seconds. A PUT follows a GET that misses
//   here and has a value there. Counters, and values that grow, get keys of their own: their first
//   letter is another.
// - Mooncake's traces of an LLM server (kvcache-ai/Mooncake), a JSON object on each line with
//   "timestamp", "input_length", "output_length" and "hash_ids". Each hash id is a block of the KV
//   cache, and a GET of it, which a PUT follows if it misses.
//
// Ignores times: a replay is as fast as possible, or as --rate says.
//
// InvalidArgument, with the line: the format or an operation is unknown, a field is missing or not
// what it must be, or a size exceeds `size_max`.
absl::StatusOr<std::vector<TraceEvent>> ReadTrace(std::istream& in, const TraceLimits& limits);

// NotFound: the file cannot be opened.
absl::StatusOr<std::vector<TraceEvent>> ReadTraceFile(const std::string& path,
                                                      const TraceLimits& limits);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_TRACE_H_
