#ifndef GANNET_TESTS_SUPPORT_FAKE_HOSTS_H_
#define GANNET_TESTS_SUPPORT_FAKE_HOSTS_H_

#include <string>
#include <vector>

namespace test_support {

// Names that getaddrinfo finds in this process as if DNS had them. A program that links this has a
// getaddrinfo of its own; it asks the system for every other name. Thread-safe.
//
// The addresses of a name are numbers, and may change at any time. A name without addresses is not
// known.
void SetFakeHost(const std::string& name, std::vector<std::string> addresses);

}  // namespace test_support

#endif  // GANNET_TESTS_SUPPORT_FAKE_HOSTS_H_
