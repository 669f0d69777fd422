#ifndef SOFTVERBS_TESTS_MODEL_MODEL_TEST_H_
#define SOFTVERBS_TESTS_MODEL_MODEL_TEST_H_

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "softverbs/tests/model/state_space.h"

namespace softverbs::model {

// What the tests of all models share.

inline constexpr uint64_t kStatesMax = 20'000'000;
inline constexpr uint64_t kLargeStatesMax = 100'000'000;

// Whether a model is searched at sizes that take minutes, too.
inline bool Large() { return std::getenv("LARGE_MODELS") != nullptr; }

template <class Model>
Exploration ExploreAndPrint(const std::string& name, const Model& model) {
  const Exploration result = Explore(model, Large() ? kLargeStatesMax : kStatesMax);
  std::cout << name << ": " << result.states << " states, " << result.transitions << " transitions"
            << (result.broken.empty() ? "" : "; counterexample: ") << result.broken << std::endl;
  return result;
}

inline std::string Lines(const std::vector<std::string>& steps) {
  std::string text;
  for (const std::string& step : steps) text += step + "\n";
  return text;
}

// Expects that no reachable state breaks the model's property.
template <class Model>
void ExpectHolds(const std::string& name, const Model& model) {
  const Exploration result = ExploreAndPrint(name, model);
  EXPECT_TRUE(result.complete) << "not all states were visited";
  EXPECT_EQ(result.broken, "") << Lines(result.trace);
}

// Expects that the model of a weaker variant has a counterexample.
template <class Model>
void ExpectCounterexample(const std::string& name, const Model& model) {
  const Exploration result = ExploreAndPrint(name, model);
  EXPECT_NE(result.broken, "");
  for (const std::string& step : result.trace) EXPECT_NE(step, "");
}

// For INSTANTIATE_TEST_SUITE_P: the variant's name, as far as a test's name may have its
// characters.
inline constexpr auto kVariantName = [](const auto& param_info) {
  std::string name = param_info.param.name;
  for (char& c : name) c = isalnum(c) ? c : '_';
  return name;
};

}  // namespace softverbs::model

#endif  // SOFTVERBS_TESTS_MODEL_MODEL_TEST_H_
