#ifndef GANNET_TOOLS_KVCLI_PIPELINE_H_
#define GANNET_TOOLS_KVCLI_PIPELINE_H_

#include <gannet/async_client.h>
#include <gannet/client.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "tools/kvcli/shell.h"

namespace gannet::kvcli {

// Runs commands of a script without waiting for each. That makes a script of many puts a hundred
// times faster. Users see the same as if the commands ran one after the other:
//
//   1. Answers are shown in the order of the commands.
//   2. A command on a key starts after the earlier ones on that key have ended.
//   3. All commands other than put, get, del and cas wait for everything before them. So does a cas
//      under a held lock.
//
// Owns a connection, which is made for the first command. One thread.
class Pipeline {
 public:
  static constexpr uint32_t kInFlightMax = 128;
  // The most answers that may wait for an earlier command's answer.
  static constexpr size_t kUnshownMax = 1024;

  // `shell` and `client` must outlive it. `options` are the client's.
  Pipeline(Shell& shell, Client& client, std::vector<std::string> servers,
           const gannet::Options& options);

  // Returns whether Run takes this command. Otherwise the shell must execute it, after Finish.
  bool Takes(const Command& command) const;
  // Starts the command, at the latest when others on its key have ended.
  void Run(Command command);
  // Makes progress and shows answers that are due. The connection stays alive only while the
  // thread calls this, WaitOr or Finish.
  void Poll();
  // Sleeps until `fd` is readable, or Poll has something to do.
  void WaitOr(int fd);
  // Waits until all answers are shown.
  void Finish();
  // Closes the connection. The next command makes another. REQUIRES: idle.
  void Disconnect() { async_.reset(); }
  bool idle() const { return entries_.empty(); }
  // The highest exit code of the commands shown.
  int worst() const { return worst_; }

 private:
  // An entry per command, in order. They are in a deque, so that they keep their addresses while
  // they are under way.
  struct Entry {
    Command command;
    std::vector<std::byte> value;  // room for a get's
    Completion answer;
    absl::Status refused;  // it could not be started
    bool done = false;
    bool holds_key = false;  // no other command on its key may start
  };

  absl::Status Connect();
  void TakeAnswers(std::chrono::nanoseconds wait);
  absl::Status Start(Entry& entry);
  void OnAnswer(const Completion& answer);
  void GiveKeyBack(Entry& entry);
  void ShowFront();
  int Show(const Entry& entry);
  absl::Status StatusOf(const Entry& entry) const;

  Shell& shell_;
  Client& client_;
  const std::vector<std::string> servers_;
  gannet::Options options_;
  std::unique_ptr<AsyncClient> async_;
  std::deque<Entry> entries_;
  uint64_t first_number_ = 0;  // of the front entry; an operation's user_data is its entry's
  uint32_t in_flight_ = 0;
  std::unordered_set<std::string> busy_keys_;
  int worst_ = kExitDone;
};

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_PIPELINE_H_
