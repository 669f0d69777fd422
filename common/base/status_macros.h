#ifndef GANNET_COMMON_BASE_STATUS_MACROS_H_
#define GANNET_COMMON_BASE_STATUS_MACROS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define GANNET_CONCAT_INNER(a, b) a##b
#define GANNET_CONCAT(a, b) GANNET_CONCAT_INNER(a, b)

// Returns `expr` (an absl::Status) from the function if it is not OK.
#define GANNET_RETURN_IF_ERROR(expr)                                                    \
  do {                                                                                  \
    if (absl::Status gannet_status = (expr); !gannet_status.ok()) return gannet_status; \
  } while (0)

// GANNET_ASSIGN_OR_RETURN(auto x, F()): assigns F()'s value to x, or returns F()'s status from the
// function.
#define GANNET_ASSIGN_OR_RETURN(lhs, expr) \
  GANNET_ASSIGN_OR_RETURN_IMPL(GANNET_CONCAT(gannet_statusor_, __LINE__), lhs, expr)
#define GANNET_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) return tmp.status();                \
  lhs = std::move(tmp).value()

#endif  // GANNET_COMMON_BASE_STATUS_MACROS_H_
