#include "server/main/disk/run_proof.h"

#include <array>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

constexpr char kName[] = "proof";
constexpr char kNewName[] = "proof.new";
constexpr char kFormat[] = "1";
constexpr size_t kBytesMax = 256;
// The format, and the fields of two KeptRuns: process, history, always, opened.
constexpr size_t kWords = 9;

std::string TextOf(const KeptRun& run) {
  return absl::StrCat(absl::Hex(run.process, absl::kZeroPad16), " ",
                      absl::Hex(run.history, absl::kZeroPad16), " ", run.always ? 1 : 0, " ",
                      run.opened);
}

// Reads four words.
bool Read(std::span<const std::string> words, KeptRun* run) {
  run->always = words[2] == "1";
  return absl::SimpleHexAtoi(words[0], &run->process) &&
         absl::SimpleHexAtoi(words[1], &run->history) && (run->always || words[2] == "0") &&
         absl::SimpleAtoi(words[3], &run->opened);
}

}  // namespace

std::optional<RunProof> ReadRunProof(Files* files) {
  const auto file = files->Open(kName);
  if (!file.ok()) return std::nullopt;
  std::string text(kBytesMax, '\0');
  const auto bytes = (*file)->ReadAt(0, std::as_writable_bytes(std::span(text)));
  if (!bytes.ok()) return std::nullopt;
  text.resize(*bytes);
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  RunProof proof;
  if (words.size() != kWords || words[0] != kFormat) return std::nullopt;
  const std::span<const std::string> all(words);
  if (!Read(all.subspan(1, 4), &proof.kept) || !Read(all.subspan(5, 4), &proof.claim)) {
    return std::nullopt;
  }
  return proof;
}

absl::Status WriteRunProof(Files* files, const RunProof& proof) {
  if (const absl::Status removed = files->Remove(kNewName);
      !removed.ok() && !absl::IsNotFound(removed)) {
    return removed;
  }
  GANNET_ASSIGN_OR_RETURN(const auto file, files->Create(kNewName));
  const std::string text =
      absl::StrCat(kFormat, " ", TextOf(proof.kept), " ", TextOf(proof.claim), "\n");
  GANNET_RETURN_IF_ERROR(file->WriteAt(0, std::as_bytes(std::span(text))));
  GANNET_RETURN_IF_ERROR(file->Sync());
  GANNET_RETURN_IF_ERROR(files->Rename(kNewName, kName));
  return files->SyncDirectory();
}

}  // namespace gannet
