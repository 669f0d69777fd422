#ifndef GANNET_TOOLS_KVCLI_ASK_MEMBERS_H_
#define GANNET_TOOLS_KVCLI_ASK_MEMBERS_H_

#include <string>
#include <vector>

#include "tools/kvcli/member_answer.h"

namespace gannet::kvcli {

// Asks all of these members at once what they are (member_standing.h), and waits for a second at
// most. Returns an answer for each "HOST:PORT", in their order. `auth_file`: whose first key is
// shown; empty: $GANNET_AUTH_FILE, or no key.
std::vector<MemberAnswer> AskMembers(const std::vector<std::string>& addresses,
                                     const std::string& auth_file);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_ASK_MEMBERS_H_
