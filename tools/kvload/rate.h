#ifndef GANNET_TOOLS_KVLOAD_RATE_H_
#define GANNET_TOOLS_KVLOAD_RATE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gannet::kvload {

// How many operations are due a second, over the time of a run: steps and ramps, one after the
// other. The last rate stays until the run ends. Without any piece, the loop is closed: an
// operation is due when another has ended.
class Rate {
 public:
  static constexpr double kRateMax = 1e9;
  static constexpr size_t kPiecesMax = 64;

  Rate() = default;
  explicit Rate(double per_second);

  // Parses pieces that are separated by commas: RATE for ever, RATE:TIME, or FROM:TO:TIME, which
  // changes evenly from one rate to the other. A rate is a number, and may end with k or M. A time
  // is a number and ms, s or m. For example 1000, or 5k:10s,5k:100k:30s. Only the last piece may be
  // without a time. Returns InvalidArgument for anything else.
  static absl::StatusOr<Rate> Parse(std::string_view text);

  bool closed_loop() const { return pieces_.empty(); }
  // Returns the time of all pieces that have one.
  int64_t LengthNs() const;
  // Returns the rate at this time of the run. REQUIRES: not closed_loop().
  double At(int64_t elapsed_ns) const;
  // Returns how many operations are due up to this time of the run. REQUIRES: not closed_loop().
  double DueUntil(int64_t elapsed_ns) const;
  // Returns the time from an operation that is due at this time of the run to the next one of the
  // same thread, if so many threads share the rate. At least 1. REQUIRES: not closed_loop().
  int64_t IntervalNs(int64_t elapsed_ns, uint32_t threads) const;

 private:
  struct Piece {
    double from = 0;
    double to = 0;
    int64_t ns = 0;  // 0: for ever
  };
  static absl::StatusOr<Piece> ParsePiece(std::string_view text);

  std::vector<Piece> pieces_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_RATE_H_
