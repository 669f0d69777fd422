#ifndef GANNET_PROXY_JOBS_SCRIPTS_H_
#define GANNET_PROXY_JOBS_SCRIPTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/base/mutex.h"

namespace gannet::proxy {

// What a script does with its one key.
enum class Script : uint8_t {
  kUnknown,
  // If the value is the first argument. Otherwise the script answers 0.
  kDelete,         // removes the key
  kExpireMs,       // sets its time to live to the second argument
  kExpireSeconds,  // the same in seconds
  kExtend,  // redis-py's Lock.extend: adds the second argument, in ms, or if the third one is not 0
            // sets it; answers 0 if the key never expires
  // Counters.
  kCount,         // adds the first argument
  kCountIfThere,  // the same, or answers nil if there is no key
  kCountFor,      // adds the second argument; a new counter lives for the first one, in seconds
  kCountAndTell,  // adds the first argument; a counter that never expires lives for the second one,
                  // in seconds; answers the sum, and what is left in ms
};

// Returns what a script does, if its text is one of the known ones.
Script RecogniseScript(std::string_view text);

// Returns the name that Redis gives to a script.
std::string Sha1Hex(std::string_view text);

// The scripts that clients have loaded, of all threads. A script is loaded once and named often,
// and each run costs a round trip. So a mutex costs little here.
//
// Thread safety: all methods may be called from any thread.
class LoadedScripts {
 public:
  // The known scripts have few texts, but somebody might vary their blanks.
  static constexpr size_t kMax = 1024;

  void Add(const std::string& sha1, Script script);
  Script Find(const std::string& sha1) const;
  void Clear();

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::string, Script> loaded_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_SCRIPTS_H_
