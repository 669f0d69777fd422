#include "common/program/command_line.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace gannet {
namespace {

using Flag = gflags::CommandLineFlagInfo;

constexpr std::string_view kFlagFile = "flagfile";
constexpr size_t kTextColumn = 26;
constexpr size_t kLineMax = 100;

bool IsSwitch(const Flag& flag) { return flag.type == "bool"; }

std::string Head(const Flag& flag) {
  if (IsSwitch(flag)) return absl::StrCat("  --[no]", flag.name);
  return absl::StrCat("  --", flag.name, flag.type == "string" ? "=TEXT" : "=N");
}

// Appends `text` as lines of at most kLineMax characters, starting at kTextColumn. REQUIRES: the
// last line of `out` has `column` characters.
void AppendWrapped(size_t column, const std::string& text, std::string* out) {
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(text, ' '))) {
    if (column < kTextColumn) {
      out->append(kTextColumn - column, ' ');
      column = kTextColumn;
    } else if (column + 1 + word.size() > kLineMax) {
      absl::StrAppend(out, "\n", std::string(kTextColumn, ' '));
      column = kTextColumn;
    } else {
      *out += ' ';
      ++column;
    }
    *out += word;
    column += word.size();
  }
  *out += '\n';
}

void AppendLine(std::string_view head, const std::string& text, std::string* out) {
  *out += head;
  AppendWrapped(head.size(), text, out);
}

void AppendFlag(const Flag& flag, std::string* out) {
  const std::string head = Head(flag);
  const std::string of_default =
      flag.default_value.empty() ? "" : absl::StrCat(" (default ", flag.default_value, ")");
  *out += head;
  size_t column = head.size();
  if (column + 2 > kTextColumn) {
    *out += '\n';
    column = 0;
  }
  AppendWrapped(column, absl::StrCat(flag.description, of_default), out);
}

std::map<std::string, Flag> FlagsOf(const Program& program) {
  std::vector<Flag> all;
  gflags::GetAllFlags(&all);
  std::map<std::string, Flag> flags;
  for (const Flag& flag : all) {
    if (flag.filename.ends_with(program.flags_file)) flags.emplace(flag.name, flag);
  }
  return flags;
}

// Returns false if there is no such flag, or gflags' own parser, which this one replaces, does what
// it says.
bool FindFlag(const std::string& name, Flag* flag) {
  if (!gflags::GetCommandLineFlagInfo(name.c_str(), flag)) return false;
  const std::string_view file = flag->filename;
  return !file.substr(file.rfind('/') + 1).starts_with("gflags");
}

class Parser {
 public:
  Parser(const Program& program, int argc, char** argv)
      : program_(program), words_(argv + std::min(argc, 1), argv + argc) {}
  // For a line of a file. `where` names the line.
  Parser(const Program& program, std::string line, std::string where)
      : program_(program), words_({std::move(line)}), where_(std::move(where)) {}

  std::optional<int> Parse() {
    while (next_ < words_.size()) {
      if (const std::optional<int> exit_code = TakeWord(words_[next_++])) return exit_code;
    }
    return std::nullopt;
  }

 private:
  int Refuse(const std::string& problem) const {
    std::fprintf(stderr, "%s: %s%s; see %s --help\n", program_.name.c_str(), where_.c_str(),
                 problem.c_str(), program_.name.c_str());
    return kExitWrongUsage;
  }

  std::optional<int> TakeWord(std::string_view word) {
    const std::string given(word);
    if (!word.starts_with('-') || word == "-" || word == "--") {
      return Refuse(absl::StrCat("takes flags only, not '", given, "'"));
    }
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    if (where_.empty() && (word == "help" || word == "h")) {
      std::fputs(HelpText(program_).c_str(), stdout);
      return 0;
    }
    if (where_.empty() && word == "version") {
      std::printf("%s %s\n", program_.name.c_str(), program_.version.c_str());
      return 0;
    }
    const size_t equals = word.find('=');
    const std::string name(word.substr(0, equals));
    std::optional<std::string> value;
    if (equals != std::string_view::npos) value = word.substr(equals + 1);
    return TakeFlag(given, name, std::move(value));
  }

  std::optional<int> TakeFlag(const std::string& given, std::string name,
                              std::optional<std::string> value) {
    if (name == kFlagFile && where_.empty()) {
      if (!value && next_ < words_.size()) value = words_[next_++];
      return value ? TakeFile(*value) : Refuse("--flagfile needs a file");
    }
    Flag flag;
    if (!FindFlag(name, &flag)) {
      const bool negated = name.starts_with("no") && !value;
      if (negated) name = name.substr(2);
      if (!negated || !FindFlag(name, &flag) || !IsSwitch(flag)) {
        return Refuse(absl::StrCat("there is no flag ", given));
      }
      value = "false";
    }
    if (!value && IsSwitch(flag)) value = "true";
    if (!value && next_ < words_.size()) value = words_[next_++];
    if (!value) return Refuse(absl::StrCat("--", name, " needs a value"));
    if (gflags::SetCommandLineOption(name.c_str(), value->c_str()).empty()) {
      return Refuse(absl::StrCat("--", name, "=", *value, ": that is no ", flag.type));
    }
    return std::nullopt;
  }

  std::optional<int> TakeFile(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const std::string flag(absl::StripAsciiWhitespace(line));
      if (flag.empty() || flag.starts_with('#')) continue;
      Parser of_line(program_, flag, absl::StrCat(path, ":", number, ": "));
      if (const std::optional<int> exit_code = of_line.Parse()) return exit_code;
    }
    if (file.eof()) return std::nullopt;
    return Refuse(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }

  const Program& program_;
  const std::vector<std::string> words_;
  const std::string where_;  // the line of the file that is read; empty: the command line
  size_t next_ = 0;
};

}  // namespace

std::string HelpText(const Program& program) {
  std::string text = absl::StrCat(program.name, ": ", program.purpose, "\n\nusage: ", program.name,
                                  " [FLAGS]\n\n");
  if (!program.examples.empty()) text += "Examples:\n";
  // Four blanks, where a flag has two: who reads the help by program takes them for no entries.
  for (const std::string& example : program.examples) absl::StrAppend(&text, "    ", example, "\n");
  if (!program.examples.empty()) text += '\n';
  std::map<std::string, Flag> left = FlagsOf(program);
  for (const FlagGroup& group : program.groups) {
    absl::StrAppend(&text, group.title, ":\n");
    const std::vector<std::string> names = absl::StrSplit(group.flags, ' ');
    for (const std::string& name : names) {
      const auto flag = left.extract(name);
      GANNET_CHECK(!flag.empty(), "no such flag, or two groups have it");
      AppendFlag(flag.mapped(), &text);
    }
    text += '\n';
  }
  if (!program.groups.empty()) text += "Other flags:\n";
  for (const auto& [name, flag] : left) AppendFlag(flag, &text);
  AppendLine("  --flagfile=FILE", "set the flags that this file has, one on each line", &text);
  AppendLine("  -h, --help", "this text", &text);
  AppendLine("  --version", "the version", &text);
  if (!program.notes.empty()) absl::StrAppend(&text, "\n", program.notes);
  return text;
}

std::optional<int> ParseCommandLine(const Program& program, int argc, char** argv) {
  return Parser(program, argc, argv).Parse();
}

}  // namespace gannet
