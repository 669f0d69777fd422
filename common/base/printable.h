#ifndef GANNET_COMMON_BASE_PRINTABLE_H_
#define GANNET_COMMON_BASE_PRINTABLE_H_

namespace gannet {

// Returns the character if it is printable ASCII, and '?' otherwise. What a peer sent goes through
// this before a person sees it, so that it cannot write to a terminal what it wants.
constexpr char PrintableOf(char c) { return c >= 0x20 && c < 0x7f ? c : '?'; }

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_PRINTABLE_H_
