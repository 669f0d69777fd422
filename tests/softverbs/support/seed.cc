#include "tests/softverbs/support/seed.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace softverbs {
namespace {

uint64_t& Seed() {
  static uint64_t seed = std::random_device()();
  return seed;
}

}  // namespace

uint64_t TestSeed() {
  printf("--seed=%llu\n", static_cast<unsigned long long>(Seed()));
  return Seed();
}

bool ParseSeed(const char* argument) {
  constexpr char kFlag[] = "--seed=";
  if (strncmp(argument, kFlag, strlen(kFlag)) != 0) return false;
  Seed() = strtoull(argument + strlen(kFlag), nullptr, 10);
  return true;
}

}  // namespace softverbs
