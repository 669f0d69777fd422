#ifndef GANNET_CLIENT_ENGINE_SHARED_WINDOWS_H_
#define GANNET_CLIENT_ENGINE_SHARED_WINDOWS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "client/session/session_memory.h"
#include "common/base/data_path_checks.h"

namespace gannet {

// The home windows that GETs begun together want to READ. Windows that are the same, overlap or
// touch come with one READ, as long as they fit its buffer. Each window lies whole in one READ, as
// a miss needs it. Allocates only when it is made. One owner thread.
class SharedWindows {
 public:
  static constexpr uint64_t kReadBytesMax = sizeof(OpBuffers::window);

  struct Wanted {
    uint32_t server;
    uint32_t op;
    uint64_t offset;
  };

  explicit SharedWindows(uint32_t capacity) { wanted_.reserve(capacity); }

  bool empty() const { return wanted_.empty(); }
  // REQUIRES: less than `capacity` are in it. The callers' own limits see to that.
  void Add(const Wanted& wanted) {
    GANNET_CHECK_DATA_PATH(wanted_.size() < wanted_.capacity(),
                           "more windows than there is room for");
    wanted_.push_back(wanted);
  }
  // Calls read(span of Wanted, bytes) for each READ. The READ begins where its first window does
  // and has so many bytes. The set is empty afterwards.
  template <class F>
  void Take(F read) {
    std::sort(wanted_.begin(), wanted_.end(), [](const Wanted& a, const Wanted& b) {
      return std::tie(a.server, a.offset) < std::tie(b.server, b.offset);
    });
    for (auto first = wanted_.begin(); first != wanted_.end();) {
      const auto end = std::find_if(first, wanted_.end(), [&](const Wanted& it) {
        return it.server != first->server || End(it) - first->offset > kReadBytesMax;
      });
      read(std::span<const Wanted>(first, end),
           static_cast<uint32_t>(End(*(end - 1)) - first->offset));
      first = end;
    }
    wanted_.clear();
  }

 private:
  static uint64_t End(const Wanted& wanted) { return wanted.offset + kWindowBytes; }

  std::vector<Wanted> wanted_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_SHARED_WINDOWS_H_
