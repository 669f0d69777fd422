#ifndef GANNET_COMMON_PROGRAM_COMMAND_LINE_H_
#define GANNET_COMMON_PROGRAM_COMMAND_LINE_H_

#include <optional>
#include <string>
#include <vector>

namespace gannet {

// Flags that serve one purpose.
struct FlagGroup {
  std::string title;
  std::string flags;  // their names, in the order of the help, with blanks between them
};

// Describes a program that takes only gflags on its command line.
struct Program {
  std::string name;
  std::string purpose;     // one line
  std::string version;     // one line
  std::string flags_file;  // the end of the path of the source file that defines its flags
  std::string notes;       // lines below the table of flags; may be empty
  // How the help groups the flags. A flag that no group names is among the others at the end.
  std::vector<FlagGroup> groups = {};
  std::vector<std::string> examples = {};  // command lines
};

inline constexpr int kExitWrongUsage = 2;

// Sets the program's flags: --name=value, --name value, --name and --noname of a switch. Leaves
// argv as it is, so that the program can be executed again with all its arguments.
//
// --flagfile=FILE sets the flags that a file has, one on each line: --name=value, or a switch.
// Lines that are empty or begin with '#' mean nothing. Of a flag that is set twice, the last
// setting holds, so flags behind --flagfile override the file.
//
// Returns nullopt if the program should go on. Otherwise returns its exit code: 0 after --help, -h
// or --version, which it answers on stdout; kExitWrongUsage for an unknown flag, a value that does
// not fit, a word that is no flag, or a file that cannot be read, which it names on stderr.
//
// gflags' own parser is not used because it exits with 1, and its help shows paths of the build.
std::optional<int> ParseCommandLine(const Program& program, int argc, char** argv);

// Returns the answer to --help.
std::string HelpText(const Program& program);

}  // namespace gannet

#endif  // GANNET_COMMON_PROGRAM_COMMAND_LINE_H_
