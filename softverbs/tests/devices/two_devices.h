#ifndef SOFTVERBS_TESTS_DEVICES_TWO_DEVICES_H_
#define SOFTVERBS_TESTS_DEVICES_TWO_DEVICES_H_

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {

// Opens softverbs0 or softverbs1. Fails the test unless these two are there: ctest sets
// SOFTVERBS_DEVICES=2.
Owned<ibv_context> OpenOfTwo(int number);

class TwoDevices : public ::testing::Test {
 protected:
  Owned<ibv_context> first_ = OpenOfTwo(0);
  Owned<ibv_context> second_ = OpenOfTwo(1);
};

// Connects two queue pairs.
void ConnectEach(Side& one, Side& other, const ConnectOptions& options = {});

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_DEVICES_TWO_DEVICES_H_
