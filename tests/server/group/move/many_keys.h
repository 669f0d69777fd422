#ifndef GANNET_TESTS_SERVER_GROUP_MOVE_MANY_KEYS_H_
#define GANNET_TESTS_SERVER_GROUP_MOVE_MANY_KEYS_H_

#include <cstdint>
#include <string>

namespace gannet {

// So many that each partition has some.
inline constexpr int kItems = 20'000;
inline constexpr uint64_t kNowMs = 1'000;

inline std::string KeyOf(int i) { return "key" + std::to_string(i); }

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_MOVE_MANY_KEYS_H_
