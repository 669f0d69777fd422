#!/usr/bin/env bash
# Runs every part of ./dev bench once, tiny, and puts its tables into a copy of the page.
# usage: bench_quick.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source=$1 build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$source/tools/bench/bench" quick --build "$build" --json "$scratch/bench.json" >"$scratch/tables"
mkdir "$scratch/docs"
cp "$source"/docs/measurements*.md "$scratch/docs"
"$source/tools/bench/render.py" "$scratch/bench.json" "$scratch"/docs/measurements*.md
cp "$source/README.md" "$scratch/readme.md"
"$source/tools/bench/render.py" "$scratch/bench.json" "$scratch/readme.md"
grep -q 'redis-benchmark. got' "$scratch/readme.md"
# The pages have the tables now, word for word, and the rest as it was.
python3 - "$scratch" "$source/docs" <<'PYTHON'
import pathlib
import sys

scratch, original = map(pathlib.Path, sys.argv[1:])


def text_of(folder):
    return "\n".join(page.read_text() for page in sorted(folder.glob("measurements*.md")))


tables = open(f"{scratch}/tables", encoding="utf-8").read()
page = text_of(scratch / "docs")
for line in tables.splitlines():
    assert line in page, f"not in the pages: {line}"
for what in ["GETs beside bare READs", "Side by side", "Instructions per operation", "redis", "memcached",
             "READs by fill", "Popular keys", "Hit ratios", "From a thousand items", "PUTs of new keys", "Posts and completions",
             "By items", "By sessions", "A crowd", "GETs while snapshots are written"]:
    assert what in tables, what
begin = "<!-- measured by ./dev bench, the device: begin -->"
first = pathlib.Path("measurements.md")
assert (scratch / "docs" / first).read_text().partition(begin)[0] == (original / first).read_text().partition(begin)[0]
PYTHON
echo "every part ran"
