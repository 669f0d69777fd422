#include "tools/kvload/rate.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace gannet::kvload {
namespace {

constexpr int64_t kPieceNsMax = 1'000'000 * kNsPerSecond;

// Parses a number that may end with one of the units. Returns false for anything else.
struct RateUnit {
  std::string_view name;
  double factor;
};
bool ParseNumber(std::string_view text, std::vector<RateUnit> units, double& number) {
  double factor = 1;
  for (const RateUnit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    factor = unit.factor;
    text.remove_suffix(unit.name.size());
    break;
  }
  if (!absl::SimpleAtod(std::string(text), &number)) return false;
  number *= factor;
  return true;
}

absl::StatusOr<double> ParseRate(std::string_view text) {
  double rate = 0;
  if (ParseNumber(text, {{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"", 1}}, rate) && rate >= 1 &&
      rate <= Rate::kRateMax) {
    return rate;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", std::string(text), "' is no rate: operations a second, from 1 to 1000M, as 5000 or 5k"));
}

absl::StatusOr<int64_t> ParseTime(std::string_view text) {
  double ns = 0;
  const auto ms = static_cast<double>(kNsPerMs);
  const auto second = static_cast<double>(kNsPerSecond);
  if (ParseNumber(text, {{"ms", ms}, {"s", second}, {"m", 60 * second}}, ns) && ns >= ms &&
      ns <= static_cast<double>(kPieceNsMax) && text.back() > '9') {
    return static_cast<int64_t>(ns);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(text), "' is no time: a number and ms, s or m, as 30s"));
}

}  // namespace

Rate::Rate(double per_second) : pieces_{{.from = per_second, .to = per_second}} {}

absl::StatusOr<Rate::Piece> Rate::ParsePiece(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ':');
  if (parts.size() > 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(text), "' has too many parts: RATE, RATE:TIME or FROM:TO:TIME"));
  }
  Piece piece;
  GANNET_ASSIGN_OR_RETURN(piece.from, ParseRate(parts.front()));
  piece.to = piece.from;
  if (parts.size() == 3) {
    GANNET_ASSIGN_OR_RETURN(piece.to, ParseRate(parts[1]));
  }
  if (parts.size() > 1) {
    GANNET_ASSIGN_OR_RETURN(piece.ns, ParseTime(parts.back()));
  }
  return piece;
}

absl::StatusOr<Rate> Rate::Parse(std::string_view text) {
  const std::vector<std::string> pieces = absl::StrSplit(std::string(text), ',');
  if (pieces.size() > kPiecesMax) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kPiecesMax, " pieces"));
  }
  Rate rate;
  for (const std::string& piece : pieces) {
    if (!rate.pieces_.empty() && rate.pieces_.back().ns == 0) {
      return absl::InvalidArgumentError("only the last piece may be without a time");
    }
    GANNET_ASSIGN_OR_RETURN(rate.pieces_.emplace_back(), ParsePiece(piece));
  }
  return rate;
}

int64_t Rate::LengthNs() const {
  int64_t length = 0;
  for (const Piece& piece : pieces_) length += piece.ns;
  return length;
}

double Rate::At(int64_t elapsed_ns) const {
  int64_t left_ns = std::max<int64_t>(0, elapsed_ns);
  for (const Piece& piece : pieces_) {
    if (piece.ns == 0) return piece.from;
    if (left_ns < piece.ns) {
      const double share = static_cast<double>(left_ns) / static_cast<double>(piece.ns);
      return piece.from + (piece.to - piece.from) * share;
    }
    left_ns -= piece.ns;
  }
  return pieces_.back().to;
}

double Rate::DueUntil(int64_t elapsed_ns) const {
  const auto seconds = [](int64_t ns) { return static_cast<double>(ns) / kNsPerSecond; };
  double due = 0;
  int64_t begin_ns = 0;
  for (const Piece& piece : pieces_) {
    const int64_t left_ns = std::max<int64_t>(0, elapsed_ns - begin_ns);
    if (piece.ns == 0) return due + piece.from * seconds(left_ns);
    if (left_ns < piece.ns) return due + (piece.from + At(elapsed_ns)) / 2 * seconds(left_ns);
    due += (piece.from + piece.to) / 2 * seconds(piece.ns);
    begin_ns += piece.ns;
  }
  return due + pieces_.back().to * seconds(elapsed_ns - begin_ns);
}

int64_t Rate::IntervalNs(int64_t elapsed_ns, uint32_t threads) const {
  const double interval = static_cast<double>(kNsPerSecond) * threads / At(elapsed_ns);
  return std::max<int64_t>(1, static_cast<int64_t>(interval));
}

}  // namespace gannet::kvload
