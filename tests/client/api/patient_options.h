#ifndef GANNET_TESTS_CLIENT_API_PATIENT_OPTIONS_H_
#define GANNET_TESTS_CLIENT_API_PATIENT_OPTIONS_H_

#include <gannet/types.h>

#include <chrono>

namespace gannet {

// Options with deadlines that only a hang reaches.
inline Options PatientOptions() {
  Options options;
  options.connect_timeout = std::chrono::milliseconds(30'000);
  options.deadline = std::chrono::milliseconds(30'000);
  return options;
}

}  // namespace gannet

#endif  // GANNET_TESTS_CLIENT_API_PATIENT_OPTIONS_H_
