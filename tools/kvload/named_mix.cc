#include "tools/kvload/named_mix.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gannet::kvload {
namespace {

constexpr std::chrono::hours kDay{24};

constexpr std::array kClusters = {
    Cluster{2, {21, 68}, "get:1", 4 * kDay},
    Cluster{11, {24, 170}, "get:0.96,add:0.02,gets:0.01,cas:0.01", 5 * kDay},
    Cluster{14, {96, 414}, "get:0.65,delete:0.22,put:0.13", kDay},
    Cluster{16, {18, 115}, "get:0.93,put:0.04,add:0.03", std::chrono::hours(1)},
    Cluster{18, {18, 37}, "get:0.96,add:0.01,gets:0.01,cas:0.02", std::chrono::hours(12)},
    Cluster{22, {54, 4}, "get:0.72,incr:0.18,put:0.10", kDay},
    Cluster{23, {35, 224}, "get:0.36,put:0.31,incr:0.30,delete:0.03", std::chrono::seconds(120)},
    Cluster{29, {36, 799}, "get:0.86,put:0.13", std::chrono::hours(1)},
    Cluster{31, {41, 15}, "put:0.94,get:0.06", std::chrono::seconds(60)},
    Cluster{37, {72, 20134}, "get:0.63,put:0.37", std::chrono::seconds(20)},
    Cluster{50, {18, 67485}, "get:0.52,put:0.48", std::chrono::seconds(900)},
    Cluster{52, {20, 273}, "get:0.91,add:0.04,gets:0.02,cas:0.03", kDay},
    Cluster{53, {36, 9213}, "get:0.89,put:0.03,prepend:0.08", 30 * kDay},
};

// Values that grow get pieces of this length at most, so that they do not grow too fast.
constexpr uint32_t kPieceBytesMax = 64;

}  // namespace

std::optional<OpKind> KindOf(std::string_view name) {
  if (name == "set") return OpKind::kPut;
  if (name == "gets") return OpKind::kGet;
  for (size_t i = 0; i < kOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    const bool named = kind != OpKind::kInsert && kind != OpKind::kRawRead;
    if (named && kOpNames[i] == name) return kind;
  }
  return std::nullopt;
}

bool OwnKeys(OpKind kind) {
  return kind == OpKind::kIncr || kind == OpKind::kDecr || kind == OpKind::kAppend ||
         kind == OpKind::kPrepend;
}

char FirstLetterOfOwnKey(OpKind kind) {
  return kind == OpKind::kIncr || kind == OpKind::kDecr ? 'c' : 'a';
}

bool NamedMix::has(OpKind kind) const {
  return std::ranges::any_of(parts, [kind](const Part& part) { return part.kind == kind; });
}

bool NamedMix::HasOwnKeys() const {
  return std::ranges::any_of(parts, [](const Part& part) { return OwnKeys(part.kind); });
}

absl::StatusOr<NamedMix> ParseMix(std::string_view text) {
  NamedMix mix;
  double sum = 0;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    const std::vector<std::string> words = absl::StrSplit(part, ':');
    const std::optional<OpKind> kind = KindOf(words[0]);
    if (!kind) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--mix: no operation '", words[0],
          "': get, gets, put, set, rmw, cas, add, replace, delete, incr, decr, append, prepend, "
          "touch, gat"));
    }
    double share = 0;
    if (words.size() != 2 || !absl::SimpleAtod(words[1], &share) || !(share > 0 && share <= 1e9)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--mix: '", part, "': write OPERATION:SHARE, with a share above 0"));
    }
    mix.parts.push_back({*kind, share});
    sum += share;
  }
  for (NamedMix::Part& part : mix.parts) part.share /= sum;
  return mix;
}

absl::StatusOr<Cluster> ClusterOf(uint32_t number) {
  std::string names;
  for (const Cluster& cluster : kClusters) {
    if (cluster.number == number) return cluster;
    absl::StrAppend(&names, names.empty() ? "" : ", ", cluster.number);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--cluster=", number, ": there are ", names, " (tools/kvload/named_mix.cc)"));
}

OpKind MixSource::ChooseKind() {
  double point = 1 - random_.Fraction();
  for (const NamedMix::Part& part : mix_.parts) {
    if (point < part.share) return part.kind;
    point -= part.share;
  }
  return mix_.parts.back().kind;
}

bool MixSource::Next(LoadOperation& operation) {
  if (left_ == 0) return false;
  --left_;
  operation.kind = ChooseKind();
  operation.put_on_miss = false;
  operation.record = DrawRecord(options_.distribution, options_.records, zipf_, random_);
  operation.value_bytes = options_.sizes.ValueBytesOf(operation.record);
  if (!OwnKeys(operation.kind)) {
    WriteKey(operation.record, options_.sizes.key_bytes, operation.key);
    return true;
  }
  WriteKey(operation.record * options_.threads + options_.thread, options_.sizes.key_bytes,
           operation.key);
  operation.key[0] = FirstLetterOfOwnKey(operation.kind);
  operation.value_bytes = std::min(operation.value_bytes, kPieceBytesMax);
  return true;
}

}  // namespace gannet::kvload
