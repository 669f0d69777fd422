#ifndef GANNET_TESTS_MODEL_MODEL_TEST_H_
#define GANNET_TESTS_MODEL_MODEL_TEST_H_

#include "softverbs/tests/model/model_test.h"

namespace gannet::model {

// The store's models are searched as those of its device are.
using softverbs::model::ExpectCounterexample;
using softverbs::model::ExpectHolds;
using softverbs::model::kSanitized;
using softverbs::model::kVariantName;
using softverbs::model::Large;

}  // namespace gannet::model

#endif  // GANNET_TESTS_MODEL_MODEL_TEST_H_
