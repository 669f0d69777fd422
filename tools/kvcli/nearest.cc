#include "tools/kvcli/nearest.h"

#include <algorithm>
#include <vector>

namespace gannet::kvcli {
namespace {

// A longer word is no slip of a name. Bounds the work.
constexpr size_t kWordMax = 32;

// The optimal string alignment distance: row i has the distances of the first i letters of `a`.
size_t Slips(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      const size_t wrong = a[i - 1] == b[j - 1] ? 0 : 1;
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + wrong});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

}  // namespace

std::string Nearest(std::string_view word, std::span<const std::string> known) {
  if (word.size() > kWordMax) return "";
  std::string nearest;
  size_t fewest = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : known) {
    if (word.empty() || name.empty() || name[0] != word[0]) continue;
    const size_t slips = Slips(word, name);
    if (slips >= std::min(fewest, name.size())) continue;
    fewest = slips;
    nearest = name;
  }
  return nearest;
}

}  // namespace gannet::kvcli
