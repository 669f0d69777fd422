#ifndef GANNET_PROXY_JOBS_STORE_QUEUE_H_
#define GANNET_PROXY_JOBS_STORE_QUEUE_H_

#include <gannet/async_client.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "proxy/jobs/job.h"

namespace gannet::proxy {

// Runs the stages of jobs, and their operations at the store. Operations begin in the order in
// which the jobs were run; those for which the client has no room wait here.
//
// One owner thread, that of the client.
class StoreQueue {
 public:
  explicit StoreQueue(AsyncClient& client) : client_(client) {}

  // Runs the job's stages until it waits for answers, or is finished.
  void Run(Job& job);
  // Makes progress. Appends the jobs that this finished.
  void Poll(std::vector<Job*>* finished);
  // Whether operations have begun since the last Poll, which posts them.
  bool has_begun() const { return has_begun_; }
  bool idle() const { return waiting_.empty() && client_.in_flight() == 0; }

 private:
  // Begins the operation, or ends it if it is not valid. Returns false if there is no room.
  bool Start(Operation& operation);
  absl::Status Begin(Operation& operation);
  absl::Status BeginWrite(Operation& operation, uint64_t id);
  void OnDone(const Completion& done, std::vector<Job*>* finished);
  // Whether the value was longer than its buffer, and the Get has begun again.
  bool GetAgain(Operation& operation);
  void End(Operation& operation, std::vector<Job*>* finished);

  AsyncClient& client_;
  std::deque<Operation*> waiting_;
  // A Get's buffer at first. It grows to what values were found to be.
  size_t room_ = 1 << 10;
  bool has_begun_ = false;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_STORE_QUEUE_H_
