#ifndef GANNET_TESTS_SERVER_RPC_KEPT_STREAM_H_
#define GANNET_TESTS_SERVER_RPC_KEPT_STREAM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "server/log/changes/change_stream.h"
#include "server/sessions/session/session_copies.h"

namespace gannet {

// The stream of a group, of which the test decides how much is committed.
class KeptStream : public ChangeConsumer {
 public:
  struct Record {
    explicit Record(const Change& of) : change(of), key(of.key), value(of.value), is_change(true) {}
    explicit Record(const SessionRecord& of) : session(of), answers(of.answers) {}

    Change Own() const {
      Change own = change;
      own.key = key;
      own.value = value;
      return own;
    }
    void GiveTo(SessionCopies* copies) const {
      if (is_change) return copies->Take(Own());
      SessionRecord own = session;
      own.answers = answers;
      copies->Take(own);
    }

    Change change{};
    SessionRecord session{};
    std::string key, value, answers;
    bool is_change = false;
    uint64_t end = 0;  // position
  };

  bool Take(const Change& change, ChangePlace* place) override {
    Add(Record(change), place->end);
    return true;
  }
  void TakeSession(const SessionRecord& record) override { Add(Record(record), end_); }
  uint64_t safe() const override { return safe_; }

  void Commit(size_t records) {
    committed_ = std::max(committed_, records);
    if (committed_ > 0) safe_ = log_[committed_ - 1].end;
  }
  // The next primary has the first `records`. Its positions begin at 0 again.
  void TakeOver(size_t records) {
    log_.erase(log_.begin() + static_cast<ptrdiff_t>(records), log_.end());
    for (Record& record : log_) record.end = 0;
    joined_at_.reset();
    end_ = safe_ = 0;
    committed_ = records;
    copies_ = CopiesOf(records);
    copies_.ForgetUndone();
  }
  // A member joins here. It gets the sessions first, and has all records that follow.
  void Join() {
    joined_at_ = log_.size();
    joiner_ = SessionCopies();
    copies_.ForEachRecord([this](const SessionRecord& record) { joiner_.Take(record); });
  }
  bool joined() const { return joined_at_.has_value(); }
  SessionCopies CopiesOf(size_t records) const {
    SessionCopies copies;
    for (size_t i = 0; i < records; ++i) log_[i].GiveTo(&copies);
    return copies;
  }
  SessionCopies CopiesOfJoiner(size_t records) const {
    SessionCopies copies = joiner_;
    for (size_t i = *joined_at_; i < records; ++i) log_[i].GiveTo(&copies);
    return copies;
  }

  const std::deque<Record>& log() const { return log_; }
  size_t committed() const { return committed_; }
  size_t joined_at() const { return *joined_at_; }

 private:
  void Add(Record record, uint64_t end) {
    record.GiveTo(&copies_);
    record.end = end_ = end;
    log_.push_back(std::move(record));
  }

  std::deque<Record> log_;
  uint64_t end_ = 0;
  uint64_t safe_ = 0;
  size_t committed_ = 0;
  SessionCopies copies_;  // the primary's own
  std::optional<size_t> joined_at_;
  SessionCopies joiner_;  // as it was when it joined
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_RPC_KEPT_STREAM_H_
