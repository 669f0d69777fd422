// Both ends are on this host.
#include "softverbs/tests/verbs_contract/host.h"

namespace verbs_contract {

AtHost::AtHost(Host host) : before_(host) {}
AtHost::~AtHost() = default;

std::string MakeHosts() { return ""; }
bool TwoHosts() { return false; }

}  // namespace verbs_contract
