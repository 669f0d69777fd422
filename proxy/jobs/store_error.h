#ifndef GANNET_PROXY_JOBS_STORE_ERROR_H_
#define GANNET_PROXY_JOBS_STORE_ERROR_H_

#include <string>

#include "proxy/jobs/job.h"

namespace gannet::proxy {

// Returns in words why the store did not do the operation, and which server that was. For codes
// that are not an answer of the command itself.
std::string StoreErrorText(const Operation& operation);
// The same for an operation on a server as a whole.
std::string ServerErrorText(const Operation& asked);

// Returns which servers did not do what all were asked to do, and why. Empty: all did it.
std::string FailedServers(Job& job);

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_STORE_ERROR_H_
