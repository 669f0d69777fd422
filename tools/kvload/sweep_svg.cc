#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "tools/kvload/sweep.h"

namespace gannet::kvload {
namespace {

constexpr double kWidth = 640;
constexpr double kLeft = 80;
constexpr double kRight = 540;
constexpr double kPanelHeight = 180;
constexpr double kPanelTop[] = {50, 290};
constexpr double kHeight = 530;

struct Line {
  std::string_view name;
  std::string_view color;
  std::vector<double> values;
};

// Returns a distance between marks, 1, 2 or 5 times a power of ten, so that about four fit.
double MarkStep(double max) {
  const double power = std::pow(10, std::floor(std::log10(max / 4)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power * 4 >= max) return factor * power;
  }
  return 10 * power;
}

std::string MarkText(double value) {
  if (value >= 1e6) return absl::StrFormat("%gM", value / 1e6);
  if (value >= 1e3) return absl::StrFormat("%gk", value / 1e3);
  return absl::StrFormat("%g", value);
}

// A picture of some lines over the same values, with an axis that begins at 0.
class Panel {
 public:
  Panel(double top, std::string_view title, const Sweep& sweep, const std::vector<Line>& lines)
      : top_(top), title_(title), sweep_(sweep), lines_(lines) {
    for (const Line& line : lines) max_ = std::max(max_, *std::ranges::max_element(line.values));
    if (max_ <= 0) max_ = 1;
    step_ = MarkStep(max_);
    max_ = std::ceil(max_ / step_) * step_;
  }

  void AppendTo(std::string& out) const {
    absl::StrAppendFormat(&out, "<text x=\"%g\" y=\"%g\" font-weight=\"bold\">%s</text>\n", kLeft,
                          top_ - 14, title_);
    for (double mark = 0; mark <= max_ * 1.001; mark += step_) AppendMark(mark, out);
    const size_t points = lines_.front().values.size();
    for (size_t i = 0; i < points; ++i) {
      absl::StrAppendFormat(&out, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%d</text>\n",
                            X(i), top_ + kPanelHeight + 18, sweep_.values[i]);
    }
    for (const Line& line : lines_) AppendLine(line, out);
  }

 private:
  double X(size_t i) const {
    const size_t points = lines_.front().values.size();
    if (points == 1) return (kLeft + kRight) / 2;
    return kLeft + 20 +
           (kRight - kLeft - 40) * static_cast<double>(i) / static_cast<double>(points - 1);
  }
  double Y(double value) const { return top_ + kPanelHeight * (1 - value / max_); }

  void AppendMark(double mark, std::string& out) const {
    absl::StrAppendFormat(
        &out, "<line x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\" stroke=\"#d8d8d8\"/>\n", kLeft,
        Y(mark), kRight, Y(mark));
    absl::StrAppendFormat(&out, "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                          kLeft - 8, Y(mark) + 4, MarkText(mark));
  }

  void AppendLine(const Line& line, std::string& out) const {
    std::string points;
    for (size_t i = 0; i < line.values.size(); ++i) {
      absl::StrAppendFormat(&points, "%s%.1f,%.1f", i == 0 ? "" : " ", X(i), Y(line.values[i]));
      absl::StrAppendFormat(&out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", X(i),
                            Y(line.values[i]), line.color);
    }
    absl::StrAppendFormat(
        &out, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", points,
        line.color);
    absl::StrAppendFormat(&out, "<text x=\"%g\" y=\"%.1f\" fill=\"%s\">%s</text>\n", kRight + 6,
                          Y(line.values.back()) + 4, line.color, line.name);
  }

  const double top_;
  const std::string_view title_;
  const Sweep& sweep_;
  const std::vector<Line>& lines_;
  double max_ = 0;
  double step_ = 1;
};

}  // namespace

std::string SweepSvg(const Sweep& sweep, const std::vector<Report>& reports) {
  std::string out = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
      kWidth, kHeight);
  std::vector<Line> rates = {{"operations/s", "#1f5fa8", {}}};
  std::vector<Line> latencies = {
      {"p50", "#1f5fa8", {}}, {"p99", "#b85c00", {}}, {"p99.9", "#9b1c31", {}}};
  for (const Report& report : reports) {
    rates[0].values.push_back(PerSecond(report.measured));
    const Histogram latency = report.measured.metrics.Latencies();
    size_t line = 0;
    for (const double fraction : {0.5, 0.99, 0.999}) {
      latencies[line++].values.push_back(static_cast<double>(latency.Percentile(fraction)) / 1000);
    }
  }
  if (!reports.empty()) {
    Panel(kPanelTop[0], "operations a second", sweep, rates).AppendTo(out);
    Panel(kPanelTop[1], "latency, microseconds", sweep, latencies).AppendTo(out);
  }
  absl::StrAppendFormat(&out, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>\n</svg>\n",
                        (kLeft + kRight) / 2, kHeight - 16, sweep.flag);
  return out;
}

}  // namespace gannet::kvload
