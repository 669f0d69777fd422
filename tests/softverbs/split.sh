#!/usr/bin/env bash
# Shows that the folder softverbs/ is a repository by itself: split.sh [--history] [--all] [--jobs=N]. Copies its files as
# they are now, and configures, builds and tests the copy: its unit tests and the verbs contract, which take all of the
# device, or --all. --history takes what is committed, with its history, as who leaves with the folder does (git subtree
# split). Exit code 77: there is no repository here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
history=no jobs=$(nproc)
targets=(softverbs softverbs_unit_test softverbs_fuzz_corpus_test verbs_contract_test)
tests=(--tests-regex '^(softverbs_(event_queue|fuzz_corpus|link|loop|net_wire|populate|ring|standby)_test|verbs_contract_test)$')
for word in "$@"; do
  case $word in
    --history) history=yes ;;
    --all) targets=(all) tests=() ;;
    --jobs=*) jobs=${word#*=} ;;
    *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
git rev-parse --verify --quiet HEAD:softverbs >/dev/null || { echo "skipped: no repository of git here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
step() { echo "== $SECONDS s: $*"; }

if [ $history = yes ]; then
  step "the history of the folder"
  git clone --quiet . "$work/clone"
  git -C "$work/clone" subtree split --prefix=softverbs --branch=alone >"$work/split" 2>&1 || fail "$(cat "$work/split")"
  git clone --quiet --branch=alone "$work/clone" "$work/softverbs"
else
  mkdir "$work/softverbs"
  git -C softverbs ls-files -z --cached --others --exclude-standard |
    tar -C softverbs --null --ignore-failed-read --files-from=- -c 2>"$work/log" | tar -C "$work/softverbs" -x
fi

step "configure"
# Without optimization and in few units, as this is about whether it builds.
cmake -S "$work/softverbs" -B "$work/build" -G Ninja -DBUILD_TESTING=ON -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0 \
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 >"$work/log" 2>&1 || fail "$(cat "$work/log")"
step "build"
cmake --build "$work/build" -j "$jobs" --target "${targets[@]}" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
step "test"
ctest --test-dir "$work/build" --output-on-failure --no-tests=error -j "$jobs" "${tests[@]}"
step "it configured, built and passed by itself"
