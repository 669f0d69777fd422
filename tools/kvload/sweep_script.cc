#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tools/kvload/sweep.h"

namespace gannet::kvload {
namespace {

constexpr char kSettings[] = R"(
set terminal svg size 640,530 font "sans-serif,12" background "white"
set grid ytics linecolor "#d8d8d8"
set border 0
set tics scale 0
set key at graph 1.02, graph 1 left top Left reverse samplen 1
set lmargin 10
set rmargin 16
set offsets graph 0.05, graph 0.05
set yrange [0:*]
set format y "%.0s%c"
)";

struct Curve {
  std::string_view name;
  std::string_view color;
  int column;
};
constexpr std::array<Curve, 1> kRates = {{{"operations/s", "#1f5fa8", 2}}};
constexpr std::array<Curve, 3> kLatencies = {
    {{"p50", "#1f5fa8", 3}, {"p99", "#b85c00", 4}, {"p99.9", "#9b1c31", 5}}};

template <size_t n>
std::string Panel(const std::string& title, const std::array<Curve, n>& curves) {
  std::string out = absl::StrCat("set title \"", title, "\"\nplot ");
  for (const Curve& curve : curves) {
    absl::StrAppendFormat(&out,
                          "%s$runs using 0:%d:xticlabels(1) with linespoints linewidth 2 "
                          "pointtype 7 pointsize 0.5 linecolor \"%s\" title \"%s\"",
                          &curve == curves.data() ? "" : ", ", curve.column, curve.color,
                          curve.name);
  }
  return out + "\n";
}

}  // namespace

std::string SweepScript(const Sweep& sweep, const std::vector<Report>& reports,
                        std::string_view svg_file) {
  // In single quotes, only these mean something to gnuplot.
  const std::string file = absl::StrReplaceAll(std::string(svg_file), {{"'", "''"}});
  std::string out =
      absl::StrCat(kSettings, "set output '", file, "'\nset multiplot layout 2,1\n$runs << END\n");
  for (size_t i = 0; i < reports.size(); ++i) {
    const Histogram latency = reports[i].measured.metrics.Latencies();
    absl::StrAppendFormat(&out, "%d %.1f", sweep.values[i], PerSecond(reports[i].measured));
    for (const double fraction : {0.5, 0.99, 0.999}) {
      absl::StrAppendFormat(&out, " %.3f",
                            static_cast<double>(latency.Percentile(fraction)) / 1000);
    }
    out += "\n";
  }
  absl::StrAppend(&out, "END\n", Panel("operations a second", kRates), "set xlabel \"", sweep.flag,
                  "\"\n", Panel("latency, microseconds", kLatencies), "unset multiplot\n");
  return out;
}

}  // namespace gannet::kvload
