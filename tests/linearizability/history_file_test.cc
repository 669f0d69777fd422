#include "tests/linearizability/history_file.h"

#include <gtest/gtest.h>

#include <array>
#include <sstream>

namespace gannet::linearizability {
namespace {

TEST(HistoryFileTest, HasALineOfJsonForEachOperation) {
  const std::array<Operation, 4> history = {
      Operation{.client = 1, .kind = Kind::kPut, .value = 7, .invoke_ns = 10, .respond_ns = 20},
      Operation{.client = 2,
                .kind = Kind::kGet,
                .value = 7,
                .found = true,
                .invoke_ns = 15,
                .respond_ns = 25},
      Operation{.client = 1,
                .kind = Kind::kCompareAndSet,
                .value = 8,
                .expected = 9,
                .invoke_ns = 30,
                .respond_ns = 40,
                .outcome = Outcome::kRefused},
      Operation{.client = 1, .kind = Kind::kDelete, .invoke_ns = 50, .outcome = Outcome::kUnknown}};
  std::ostringstream to;
  WriteHistory("key0", history, &to);
  EXPECT_EQ(to.str(),
            R"({"key":"key0","client":1,"operation":"put","value":7,"expected":null,"found":false,)"
            R"("outcome":"done","call_ns":10,"return_ns":20})"
            "\n"
            R"({"key":"key0","client":2,"operation":"get","value":7,"expected":null,"found":true,)"
            R"("outcome":"done","call_ns":15,"return_ns":25})"
            "\n"
            R"({"key":"key0","client":1,"operation":"compare_and_set","value":8,"expected":9,)"
            R"("found":false,"outcome":"refused","call_ns":30,"return_ns":40})"
            "\n"
            R"({"key":"key0","client":1,"operation":"delete","value":null,"expected":null,)"
            R"("found":false,"outcome":"unknown","call_ns":50,"return_ns":null})"
            "\n");
}

}  // namespace
}  // namespace gannet::linearizability
