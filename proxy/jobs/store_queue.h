#ifndef GANNET_PROXY_JOBS_STORE_QUEUE_H_
#define GANNET_PROXY_JOBS_STORE_QUEUE_H_

#include <gannet/async_client.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proxy/jobs/job.h"
#include "proxy/jobs/walks.h"

namespace gannet::proxy {

// Runs the stages of jobs, and their operations at the store. Operations begin in the order in
// which the jobs were run. If the client has no room, they wait here.
//
// One owner thread, that of the client.
class StoreQueue {
 public:
  // `inbox` is for the walks that `walks` ends.
  StoreQueue(AsyncClient& client, Walks& walks, WalkInbox& inbox);

  // Runs the job's stages until it waits for answers, or is finished.
  void Run(Job& job);
  // Makes progress. Appends the jobs that finished.
  void Poll(std::vector<Job*>* finished);
  // Lets a connection's parked operations go on, because it holds less now.
  void Unpark(Holder& holder);
  // The same for a connection that ends. Operations that only its application would have needed end
  // without memory. REQUIRES: its jobs are orphans.
  void Abandon(Holder& holder);
  // Poll will not report this job, if it has finished and was not reported yet.
  void Forget(const Job& job) { std::erase(ended_, &job); }
  // Returns whether operations wait for memory.
  bool is_short() const { return !short_.empty(); }
  // The same, but for those of this holder.
  bool IsShortFor(const Holder& holder) const;
  // How many operations wait for memory, and how many for room at the client.
  size_t short_operations() const { return short_.size(); }
  size_t queued_operations() const { return waiting_.size(); }
  // How many operations got the memory that they waited for.
  uint64_t grants() const { return grants_; }
  // Returns whether operations have begun since the last Poll. The next one posts them.
  bool has_begun() const { return has_begun_; }
  bool idle() const {
    return waiting_.empty() && short_.empty() && turned_.empty() && ended_.empty() &&
           client_.in_flight() == 0 && walks_under_way_ == 0;
  }
  // Takes the walks that ended from the inbox. Appends the jobs that finished.
  void TakeWalks(std::vector<Job*>* finished);

 private:
  // Begins the operation, or ends it if it is not valid. Returns false if there is no room.
  bool Start(Operation& operation);
  // Takes the memory that the operation needs: all that its job makes of the answer is charged
  // before it begins. Returns false if there is none. Then the operation waits, or has ended.
  bool TakeMemory(Operation& operation);
  size_t RoomFor(const Operation& operation) const;
  static size_t Wanted(const Operation& operation, size_t room);
  void StartOrWait(Operation& operation);
  // A job takes a turn, or waits for it. Who takes several, takes smaller numbers first.
  void TakeTurn(Operation& operation);
  void EndTurns(Job& job);
  // Begins operations that waited for memory.
  void GrantShort();
  // Gives back the memory that the answer did not need.
  void Settle(Operation& operation);
  absl::Status Begin(Operation& operation);
  absl::Status BeginWrite(Operation& operation, uint64_t id);
  void OnDone(const Completion& done, std::vector<Job*>* finished);
  // Returns true if the value was longer than its buffer. Then the Get has begun again.
  bool GetAgain(Operation& operation);
  bool WalkAgain(Operation& walk);
  // Runs a job whose operations are answered, and the transaction that it is a part of.
  void GoOn(Job& job, std::vector<Job*>* finished);
  void End(Operation& operation, std::vector<Job*>* finished);

  AsyncClient& client_;
  Walks& walks_;
  WalkInbox& inbox_;
  uint32_t walks_under_way_ = 0;
  std::deque<Operation*> waiting_;
  std::deque<Operation*> short_;  // these wait for memory; others overtake them
  // The turns that are taken, and who waits for each.
  absl::flat_hash_map<uint64_t, std::deque<Operation*>> turns_;
  std::vector<Operation*> turned_;  // these have got theirs since the last Poll
  std::vector<Job*> ended_;         // jobs that finished outside of Poll
  uint64_t grants_ = 0;
  // The buffer of a Get at first. Later Gets begin with the lengths that values were found to have.
  static constexpr size_t kRoomMin = 1 << 10;
  size_t room_ = kRoomMin;
  bool has_begun_ = false;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_STORE_QUEUE_H_
