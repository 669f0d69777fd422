// Shell: what changes of a key.

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tools/kvcli/answers.h"
#include "tools/kvcli/shell.h"

namespace gannet::kvcli {

bool Shell::Pause(std::chrono::milliseconds time) const {
  constexpr std::chrono::milliseconds kSlice{50};
  for (std::chrono::milliseconds rest = time; rest.count() > 0; rest -= kSlice) {
    if (interrupted_.load(std::memory_order_relaxed)) return false;
    std::this_thread::sleep_for(std::min(rest, kSlice));
  }
  return true;
}

int Shell::Watch(const Command& command) {
  const std::string& key = command.keys[0];
  interrupted_.store(false, std::memory_order_relaxed);
  std::optional<uint64_t> shown;  // version; 0 = absent
  for (uint64_t left = command.count.value_or(UINT64_MAX); left > 0;) {
    const auto value = client_.Get(key);
    if (!value.ok()) return Report(value.status());
    const uint64_t version = value->has_value() ? (*value)->info.version : 0;
    if (version != shown) {
      shown = version;
      --left;
      if (version == 0) {
        if (options_.json) {
          NotFound(key);
        } else {
          std::printf("0 (none)\n");
        }
      } else if (options_.json) {
        ShowItem(key, **value, false);
      } else {
        std::printf("%s %s\n", std::to_string(version).c_str(), Escaped((*value)->data).c_str());
      }
      if (!FlushAnswers()) return kExitError;  // main says why
    }
    if (left > 0 && !Pause(command.every)) return kExitDone;
  }
  return kExitDone;
}

}  // namespace gannet::kvcli
