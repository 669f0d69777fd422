#ifndef GANNET_PROXY_JOBS_READ_MODIFY_WRITE_H_
#define GANNET_PROXY_JOBS_READ_MODIFY_WRITE_H_

#include "proxy/jobs/job.h"

namespace gannet::proxy {

// Reads the job's first key, and puts what `modify` makes of the item, if it is still of the
// version that was read. Does so again until nobody was in between, or no try is left.
//
// The stage `written` sees the answer to the Put, or to the Get if that failed.
void ReadModifyWrite(Job& job, Modify modify, Job::Stage written);

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_READ_MODIFY_WRITE_H_
