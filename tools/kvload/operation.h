#ifndef GANNET_TOOLS_KVLOAD_OPERATION_H_
#define GANNET_TOOLS_KVLOAD_OPERATION_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gannet::kvload {

// The kinds of operations that a load run counts separately. An insert is a PUT of a new record. An
// rmw is a GET and then a PUT. A cas is the same, but its PUT is refused if the version changed.
enum class OpKind : uint8_t {
  kGet,
  kPut,
  kInsert,
  kRmw,
  kRawRead,
  kCas,
  kAdd,
  kReplace,
  kDelete,
  kIncr,
  kDecr,
  kAppend,
  kPrepend,
  kTouch,
  kGetAndTouch,
};
inline constexpr size_t kOpKinds = 15;
inline constexpr std::array<std::string_view, kOpKinds> kOpNames = {
    "get",    "put",  "insert", "rmw",    "raw_read", "cas",   "add", "replace",
    "delete", "incr", "decr",   "append", "prepend",  "touch", "gat"};

struct LoadOperation {
  OpKind kind = OpKind::kGet;
  bool put_on_miss = false;          // a PUT follows a GET that misses
  uint32_t value_bytes = 0;          // of the value that a PUT writes
  std::chrono::milliseconds ttl{0};  // of what it writes; 0: as the run says
  uint64_t record = 0;               // of an insert
  std::string key;
};

// Writes the key of a record: its number in decimal, zero padded to `bytes`. REQUIRES: it fits.
void WriteKey(uint64_t record, uint32_t bytes, std::string& key);

// A stream of operations for one thread.
class OperationSource {
 public:
  virtual ~OperationSource() = default;
  // Fills in the next operation, and reuses the memory of its key. Returns false if there are no
  // more.
  virtual bool Next(LoadOperation& operation) = 0;
  // Called when an insert was acknowledged.
  virtual void Inserted(uint64_t /*record*/) {}
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_OPERATION_H_
