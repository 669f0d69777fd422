#ifndef GANNET_TOOLS_KVCLI_TOP_VIEW_H_
#define GANNET_TOOLS_KVCLI_TOP_VIEW_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tools/kvcli/text.h"
#include "tools/kvcli/top_change.h"

namespace gannet::kvcli {

// How `kvcli top` shows what changed.

struct ViewSize {
  size_t columns = 80;
  size_t lines = 24;
};
// The size for output that is no terminal.
inline constexpr ViewSize kNoLimit{1'000'000, 1'000'000};

struct ViewLine {
  std::string text;
  bool heading = false;  // of a table
};

// Returns the lines to show, none longer than the size has columns, and at most as many as it has
// lines. If clients do not fit, the last line tells how many.
std::vector<ViewLine> TopView(std::span<const ServerChange> servers, ViewSize size);

// Returns one object for all servers. What is measured by time is null as long as there was only
// one look.
Json TopJson(std::span<const ServerChange> servers);

// An item as `kvcli hotkeys --json` has it, and about how often it was used: "12", "32+".
Json HotKeyJson(const HotKey& key);
std::string UsesText(const HotKey& key);
// What stands behind the key: "  leased" or nothing.
std::string_view LeaseText(const HotKey& key);

// "0", "12.3", "41.2k", "3.07M".
std::string Amount(double number);

// Returns the first `columns` characters of a text. UTF-8 stays whole.
std::string CutTo(std::string_view text, size_t columns);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_TOP_VIEW_H_
