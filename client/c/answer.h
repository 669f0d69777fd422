#ifndef GANNET_CLIENT_C_ANSWER_H_
#define GANNET_CLIENT_C_ANSWER_H_

#include <gannet/gannet.h>
#include <gannet/registered_memory.h>
#include <gannet/types.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/check.h"

namespace gannet {

// Turns answers of the C++ API into structures of C. gannet_free or gannet_memory_free frees what
// is allocated here.

gannet_item_info MakeInfo(const ItemInfo& info);
// ResourceExhausted: there is no memory for the copy.
absl::Status CopyValue(std::string_view data, const ItemInfo& info, gannet_value* out);

// The error of a function that cannot allocate its answer.
absl::Status NoMemory();

// A structure of C, followed in the same memory by the strings that it points to. All fields are 0
// at first. gannet_free frees both.
template <class T>
class StructureWithTexts {
 public:
  // `texts`: all that will be added.
  explicit StructureWithTexts(std::initializer_list<const std::string*> texts) {
    size_t bytes = sizeof(T);
    for (const std::string* text : texts) bytes += text->size() + 1;
    memory_.reset(static_cast<T*>(std::calloc(1, bytes)));
    if (memory_ != nullptr) at_ = reinterpret_cast<char*>(memory_.get() + 1);
  }

  // Returns nullptr if there is no memory.
  T* get() const { return memory_.get(); }
  T* Release() { return memory_.release(); }
  // Returns the text's copy. REQUIRES: get() is not nullptr.
  const char* Add(const std::string& text) {
    GANNET_CHECK(get() != nullptr, "there is no answer to add to");
    char* const begin = at_;
    std::memcpy(at_, text.c_str(), text.size() + 1);
    at_ += text.size() + 1;
    return begin;
  }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> memory_;
  char* at_ = nullptr;
};

// Fills in the first out->size bytes. InvalidArgument: out->size is wrong.
absl::Status WriteStats(const absl::StatusOr<ServerStats>& stats, gannet_stats* out);
// Writes the strings behind the structure, in the same memory.
gannet_status WriteServerInfo(const std::vector<ServerInfo>& infos, uint32_t server,
                              gannet_server_info** out);
gannet_status WriteRails(const std::vector<ServerInfo>& infos, uint32_t server, gannet_rail** out,
                         size_t* count);
gannet_status WriteHeldLocks(const std::vector<HeldLock>& locks, gannet_held_lock** out,
                             size_t* count);

// A gannet_memory is a RegisteredMemory, and a gannet_span is laid out as a RegisteredSpan, so an
// array of them is used as it is: an asynchronous operation needs the array until it completes.
std::span<const RegisteredSpan> AsSpans(const gannet_span* spans, size_t count);
gannet_status WriteMemory(absl::StatusOr<RegisteredMemory> memory, gannet_memory** out);

// Returns the status of an answer that may be "there is none". Fills in `out` if there is an
// answer, and zeroes it if not.
gannet_status WriteInfo(const absl::StatusOr<std::optional<ItemInfo>>& info, gannet_item_info* out);

}  // namespace gannet

#endif  // GANNET_CLIENT_C_ANSWER_H_
