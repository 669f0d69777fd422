#ifndef GANNET_TOOLS_KVCLI_MEMBER_ANSWER_H_
#define GANNET_TOOLS_KVCLI_MEMBER_ANSWER_H_

#include <cstdint>
#include <string>

#include "common/protocol/member_standing.h"

namespace gannet::kvcli {

// What came back when a member of a group was asked what it is.
struct MemberAnswer {
  enum class Kind : uint8_t {
    kNotAsked,  // `why`
    kDead,      // its host answers, and nobody listens there
    kSilent,    // nothing came back within the time, or no way leads there
    kStarts,    // it prepares its memory
    kLives,     // it answers, but does not say what it is: an older version, or it wants a key
    kTold,      // `standing`
  };
  Kind kind = Kind::kNotAsked;
  std::string why = "it was not asked";  // of all but kTold
  MemberStanding standing = {};
};

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_MEMBER_ANSWER_H_
