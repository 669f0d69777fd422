#ifndef GANNET_PROXY_JOBS_SCRIPTS_H_
#define GANNET_PROXY_JOBS_SCRIPTS_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/mutex.h"
#include "proxy/jobs/job.h"
#include "proxy/jobs/lua_script.h"
#include "proxy/jobs/script_items.h"

namespace gannet::proxy {

// The scripts that clients have loaded or run, of all threads. If there are too many, it forgets
// the oldest. Libraries send a script anew if it is not known.
//
// Thread safety: all methods may be called from any thread.
class LoadedScripts {
 public:
  static constexpr size_t kMax = 1024;
  static constexpr size_t kBytesMax = 16 << 20;

  void Add(const std::string& sha1, std::string_view text);
  // Returns nullptr if it is not known.
  std::shared_ptr<const std::string> Find(const std::string& sha1) const;
  void Clear();

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const std::string>> loaded_
      GANNET_GUARDED_BY(mutex_);
  std::deque<std::string> order_ GANNET_GUARDED_BY(mutex_);  // the oldest first
  size_t bytes_ GANNET_GUARDED_BY(mutex_) = 0;
};

// A script that a job runs.
struct ScriptRun final : ScriptHost {
  // Runs the command against `items`.
  bool Call(std::span<const std::string_view> words, std::string_view* reply) override;

  std::shared_ptr<const std::string> loaded;  // nullptr: the text is in the command
  std::string_view text;
  std::string sha1;
  std::span<const std::string_view> names;      // of its keys
  std::span<const std::string_view> arguments;  // both of the job's command
  std::vector<std::string> keys;                // that it uses, as the store has them
  std::vector<uint64_t> turns;                  // of the keys that it was given: hashes in order
  ScriptItems items;
  size_t wanted = 16 << 10;  // bytes of values and the reply, beyond what is READ
  Charge charge;             // for them
  ClientState client;        // of the commands that it calls
  const Service* service = nullptr;
  Counters* counters = nullptr;
  Job part;  // the command that it calls
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_SCRIPTS_H_
