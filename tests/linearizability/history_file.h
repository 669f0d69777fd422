#ifndef GANNET_TESTS_LINEARIZABILITY_HISTORY_FILE_H_
#define GANNET_TESTS_LINEARIZABILITY_HISTORY_FILE_H_

#include <ostream>
#include <span>
#include <string_view>

#include "tests/linearizability/linearizability.h"

namespace gannet::linearizability {

// Writes the history of one key in the format of docs/testing.md ("Histories"), one line of JSON an
// operation, so that other checkers can read it. The order is that of `history`. The key must need
// no escapes.
void WriteHistory(std::string_view key, std::span<const Operation> history, std::ostream* to);

}  // namespace gannet::linearizability

#endif  // GANNET_TESTS_LINEARIZABILITY_HISTORY_FILE_H_
