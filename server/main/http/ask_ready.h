#ifndef GANNET_SERVER_MAIN_HTTP_ASK_READY_H_
#define GANNET_SERVER_MAIN_HTTP_ASK_READY_H_

#include <string>

#include "absl/status/status.h"

namespace gannet {

// Asks the kvserver that shows itself at ADDR:PORT (--http) whether it is ready, for health checks
// where there is no other program that speaks HTTP: the image has none. Blocks for some seconds at
// most.
//   Unavailable: it gives no answer. FailedPrecondition: it is not ready; the text says why.
absl::Status AskReady(const std::string& address);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_HTTP_ASK_READY_H_
