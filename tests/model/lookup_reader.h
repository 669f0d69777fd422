#ifndef GANNET_TESTS_MODEL_LOOKUP_READER_H_
#define GANNET_TESTS_MODEL_LOOKUP_READER_H_

#include "tests/model/lookup_model.h"

namespace gannet::model::lookup {

// The client's lookup of K: what it does when the READ under way completes. A hit is believed
// because of the item alone, a miss because of W1 to W3. Anything else is a retry.
class Reader {
 public:
  using State = LookupModel::State;
  using Phase = LookupModel::Phase;
  using Verdict = LookupModel::Verdict;

  Reader(const Rules& rules, const State& state) : rules_(rules), state_(state) {}

  // Returns whether the READ under way covers the word and has not sampled it yet.
  static bool MaySample(const State& state, Word word);

  // Completes the READ under way, sampling all words that were not sampled yet, and posts the next
  // one.
  State Advance();

 private:
  void AfterWindow();
  void AfterItems();
  void AfterWindowItems();
  void AfterStash();
  void AfterStashItems();
  void ConfirmStashMiss();
  void AfterAgain();
  bool BucketExact(int bucket) const;
  bool WindowExact() const;
  uint8_t Candidates(int bucket) const;
  void Post(Phase phase) { state_.phase = phase; }
  void Finish(Verdict verdict);

  const Rules& rules_;
  State state_;
  std::array<uint16_t, kWords> copy_ = {};  // of the READ that completed
};

}  // namespace gannet::model::lookup

#endif  // GANNET_TESTS_MODEL_LOOKUP_READER_H_
