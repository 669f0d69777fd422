#include "common/rdma/status.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

absl::StatusCode StatusCodeForErrno(int error) {
  switch (error) {
    case EINVAL:
    case EAFNOSUPPORT:
      return absl::StatusCode::kInvalidArgument;
    case EPERM:
    case EACCES:
      return absl::StatusCode::kPermissionDenied;
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
      return absl::StatusCode::kResourceExhausted;
    case ENOSYS:
    case ENODEV:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
    case EOPNOTSUPP:
      return absl::StatusCode::kFailedPrecondition;
    case EAGAIN:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

// Returns advice, or "" if there is none beyond the error itself.
const char* Advice(int error) {
  switch (error) {
    case ENOSYS:
    case ENODEV:
      return "; this machine has no RDMA device, or its driver is not loaded (`ibv_devices` lists "
             "them)";
    case EADDRINUSE:
      return "; another process listens there, choose another port";
    case EADDRNOTAVAIL:
      return "; no RDMA device has that address";
    default:
      return "";
  }
}

absl::Status MakeStatus(int error, std::string_view what) {
  char buffer[128];
  const char* text = strerror_r(error, buffer, sizeof(buffer));
  return absl::Status(
      StatusCodeForErrno(error),
      absl::StrCat(std::string(what), ": ", text, " (errno ", error, ")", Advice(error)));
}

absl::StatusCode StatusCodeForCompletion(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      return absl::StatusCode::kUnavailable;
    case IBV_WC_REM_ACCESS_ERR:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

const char* Advice(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_WR_FLUSH_ERR:
      return "; the connection is broken";
    case IBV_WC_RETRY_EXC_ERR:
      return "; the peer or the way to it is dead";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "; the peer posted no receive in time";
    case IBV_WC_REM_ACCESS_ERR:
      return "; the peer's rkey, bounds or access rights do not allow it";
    default:
      return "";
  }
}

}  // namespace

absl::Status ErrnoStatus(int error, std::string_view what) {
  if (error == 0) return absl::OkStatus();
  return MakeStatus(std::abs(error), what);
}

absl::Status LastErrnoStatus(std::string_view what) {
  // A failed call that did not set errno has still failed.
  return MakeStatus(errno == 0 ? EIO : errno, what);
}

absl::Status LastErrnoStatusOfPinning(std::string_view what) {
  const int error = errno;
  if (error != ENOMEM && error != EPERM && error != EAGAIN) return LastErrnoStatus(what);
  rlimit limit{};
  std::string locked = "?";
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    locked =
        limit.rlim_cur == RLIM_INFINITY ? "unlimited" : absl::StrCat(limit.rlim_cur / 1024, " KiB");
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(std::string(what), ": ", std::strerror(error),
                   "; RDMA pins memory, and this process may lock ", locked,
                   " (RLIMIT_MEMLOCK): raise it with `ulimit -l unlimited`, "
                   "/etc/security/limits.conf or systemd's LimitMEMLOCK=infinity, or use less"));
}

absl::Status CompletionStatus(const ibv_wc& completion, std::string_view what) {
  if (completion.status == IBV_WC_SUCCESS) return absl::OkStatus();
  return absl::Status(
      StatusCodeForCompletion(completion.status),
      absl::StrCat(std::string(what), ": ", ibv_wc_status_str(completion.status), " (vendor error ",
                   completion.vendor_err, ")", Advice(completion.status)));
}

namespace {

const char* Happened(rdma_cm_event_type event) {
  switch (event) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return "the address was not resolved";
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return "no path was found";
    case RDMA_CM_EVENT_UNREACHABLE:
      return "no answer";
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return "the connection was not made";
    case RDMA_CM_EVENT_DISCONNECTED:
      return "it closed the connection";
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return "the local device was removed";
    default:
      return rdma_event_str(event);
  }
}

const char* WhatToDo(rdma_cm_event_type event, int status, bool softverbs) {
  if (softverbs && status == -EACCES) {
    return "; on softverbs client and server must be processes of one user";
  }
  const bool unresolved = event == RDMA_CM_EVENT_ADDR_ERROR || event == RDMA_CM_EVENT_ROUTE_ERROR;
  if (softverbs && unresolved) {
    return "; softverbs reaches servers on this host only, unless both sides have SOFTVERBS_NET "
           "set "
           "(softverbs/README.md)";
  }
  if (unresolved) {
    return "; check the address, and that an RDMA device of this host is on that network "
           "(`ibv_devinfo` shows its ports, `ip route get` the way)";
  }
  if (event == RDMA_CM_EVENT_UNREACHABLE) {
    return "; check that the server's host is up and that nothing blocks RDMA on the way";
  }
  return "";
}

}  // namespace

std::string FailureText(rdma_cm_event_type event, int status, bool softverbs) {
  std::string text = Happened(event);
  char buffer[128];
  if (status < 0) {
    absl::StrAppend(&text, ": ", strerror_r(-status, buffer, sizeof(buffer)));
  } else if (status > 0) {
    absl::StrAppend(&text, " (reason ", status, " of the device)");
  }
  return absl::StrCat(text, WhatToDo(event, status, softverbs));
}

absl::Status NoDeviceStatus() {
  return absl::FailedPreconditionError(
      "there is no RDMA device here; run the program with `softverbs-run PROGRAM ARGS...`, or link "
      "it with the CMake target gannet::softverbs, to use the user-space device for one host");
}

}  // namespace gannet
