#ifndef GANNET_SERVER_SESSIONS_SESSION_SESSION_UPDATES_H_
#define GANNET_SERVER_SESSIONS_SESSION_SESSION_UPDATES_H_

#include <cstdint>

#include "server/sessions/session/session_copies.h"

namespace gannet {

// Gives updates to SessionCopies. The requests of one session mostly come in a row. So it keeps
// what it needs of that session, and writes it back when another one comes.
//
// Nothing else uses the copies from the first Take until Flush, or until it is destroyed.
class SessionCopies::Updates {
 public:
  explicit Updates(SessionCopies* copies) : copies_(copies) {}
  ~Updates() { Store(); }
  Updates(const Updates&) = delete;
  Updates& operator=(const Updates&) = delete;

  // An update's request was answered kOk. Does what SessionCopies::Take does with it.
  [[gnu::always_inline]] void Take(uint64_t token, uint64_t sequence, uint64_t version) {
    if (token != it_.token) [[unlikely]] {
      Store();
      it_ = Look(copies_, token);
    }
    if (sequence <= it_.over) return;
    if (sequence > it_.highest) {
      it_.highest = sequence;
      it_.over = sequence > it_.credits ? sequence - it_.credits : 0;
    }
    it_.answers[sequence & it_.mask] = {.sequence = sequence,
                                        .words = {version, 0, 0},
                                        .opcode = static_cast<uint8_t>(Opcode::kPut),
                                        .status = static_cast<uint8_t>(ReplyStatus::kOk),
                                        .zero = {}};
  }
  void Flush() {
    Store();
    it_ = {};
  }

 private:
  // What it needs of a session. No number is taken until there is one.
  struct Current {
    uint64_t token = 0;
    Copy* copy = nullptr;
    SessionAnswer* answers = nullptr;
    uint64_t mask = 0;
    uint64_t credits = 0;
    uint64_t highest = 0;
    uint64_t over = UINT64_MAX;  // numbers up to this are over, as for PlaceOf
  };

  void Store() {
    if (it_.copy != nullptr) it_.copy->highest = it_.highest;
  }
  // Not a method that changes this, so that it_ may be in registers.
  [[gnu::noinline]] static Current Look(SessionCopies* copies, uint64_t token) {
    Copy* const copy = token == 0 ? nullptr : copies->Find(token);
    if (copy == nullptr) return {.token = token};
    return {.token = token,
            .copy = copy,
            .answers = copy->answers.data(),
            .mask = copy->mask,
            .credits = copy->credits,
            .highest = copy->highest,
            .over = copy->highest > copy->credits ? copy->highest - copy->credits : 0};
  }

  SessionCopies* const copies_;
  Current it_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_SESSION_SESSION_UPDATES_H_
