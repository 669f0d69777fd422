#!/usr/bin/env bash
# Shows that softverbs stands alone: alone.sh SOURCE_DIR BUILD_DIR. A copy of its folder configures
# without packages of others, and builds two of its sources; all of it would take minutes. The
# component that BUILD_DIR installs is whole, and works.
set -euo pipefail
source_dir=$1 build_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
# quiet LOG COMMAND...: prints the output only of a command that fails.
quiet() {
  local log=$work/$1.log
  shift
  "$@" >"$log" 2>&1 || { cat "$log"; fail "$*"; }
}

# --- Alone: nothing lies beside the folder, and no package of others can be found.
mkdir "$work/softverbs"
tar -C "$source_dir" --exclude=./.git --exclude='./build*' -c . | tar -C "$work/softverbs" -x
hidden=()
for package in PkgConfig absl gflags glog GTest nlohmann_json; do
  hidden+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
done
PKG_CONFIG=/bin/false quiet configure cmake -S "$work/softverbs" -B "$work/build" -G Ninja \
  -DCMAKE_BUILD_TYPE=Debug "${hidden[@]}"
grep -iE 'gannet|absl|gflags|glog|gtest|gmock' "$work/build/build.ninja" && fail "a target of others"
targets=(softverbs-run base/CMakeFiles/softverbs_base_objects.dir/gid.cc.o)
man_page=
if command -v scdoc >/dev/null; then
  targets+=(softverbs_man)
  man_page=share/man/man1/softverbs-run.1.gz
fi
quiet build cmake --build "$work/build" --target "${targets[@]}"
[ -s "$work/softverbs/LICENSE" ] || fail "the folder has no licence"
for page in README.md DECISIONS.md DESIGN.md NETWORK.md PROGRAMS.md SPEED.md CHANGELOG.md; do
  for target in $(grep -oE '\]\([^)#:]+' "$work/softverbs/$page" | cut -c3-); do
    [ -e "$work/softverbs/$target" ] || fail "$page leads out of the folder, to $target"
  done
done
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$work/build/CMakeCache.txt")
[ -n "$version" ] || fail "no version"

# --- Its packages. The libraries are those of BUILD_DIR, to save the minutes.
cp -a "$build_dir/lib/libsoftverbs.so" "$build_dir/lib/softverbs" "$work/build/lib/"
(cd "$work/build" && quiet cpack cpack)
archive=$(find "$work/build" -maxdepth 1 -name 'softverbs-*.tar.gz')
[ -n "$archive" ] || fail "no archive"
mkdir "$work/unpacked"
tar -xzf "$archive" --strip-components=1 -C "$work/unpacked"
output=$("$(find "$work/unpacked" -name softverbs-run -path '*bin/*')" ibv_devices)
grep -q softverbs0 <<<"$output" || fail "the archive's program said $output"
contents=$(dpkg-deb --contents "$work"/build/softverbs_"$version"*.deb)
for name in bin/softverbs-run share/doc/softverbs/CHANGELOG.md $man_page; do
  grep -q "/usr/$name\$" <<<"$contents" || fail "the package has no $name: $contents"
  [ -s "$work/unpacked/$name" ] || fail "the archive has no $name"
done

# --- The installed component.
prefix=$work/prefix
quiet install cmake --install "$build_dir" --component softverbs --prefix "$prefix"
preload=$(find "$prefix" -name libsoftverbs.so)
dropin=$(dirname "$(find "$prefix" -name libibverbs.so.1)")
[ "$dropin" = "${preload%/*}/softverbs" ] || fail "the places of the libraries: $preload, $dropin"
[ -s "$dropin/libsoftverbs-names.so" ] || fail "no libsoftverbs-names.so for dlmopen"
expected=(bin/softverbs-run include/softverbs/control.h share/doc/softverbs/LICENSE share/doc/softverbs/README.md share/doc/softverbs/CHANGELOG.md share/doc/softverbs/DECISIONS.md share/doc/softverbs/DESIGN.md share/doc/softverbs/NETWORK.md share/doc/softverbs/PROGRAMS.md share/doc/softverbs/SPEED.md)
for name in "${expected[@]}"; do
  [ -s "$prefix/$name" ] || fail "no $name"
done
foreign=$(cd "$prefix" && find . ! -type d | grep -v softverbs || true)
[ -z "$foreign" ] || fail "files of others: $foreign"

run=$prefix/bin/softverbs-run
for program in "$run" "$work/build/bin/softverbs-run"; do
  [ "$("$program" --version)" = "softverbs $version" ] || fail "the version of $program"
done
for library in "$preload" "$dropin/librdmacm.so.1"; do
  needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
  foreign=$(grep -vE '^(libc|libm|libgcc_s|ld-linux.*)\.so\.' <<<"$needed" || true)
  [ -z "$foreign" ] || fail "$library needs $foreign"
  foreign=$(nm -D --defined-only "$library" | awk '{print $3}' |
    grep -vE '^(_?ibv_|rdma_|softverbs_|r[a-z]+(@|$)|repoll_|m(bps|ult)_to_ibv_rate|(IBVERBS|RDMACM|SOFTVERBS)_)' || true)
  # Calls of the C library that the library to preload takes the place of.
  if [ "$library" = "$preload" ]; then
    foreign=$(grep -vxFf <(sed -n '/preload\/loader_calls.cc/,/local:/s/^ *\(.*\);$/\1/p' \
      "$source_dir/abi/preload.map") <<<"$foreign" || true)
  fi
  [ -z "$foreign" ] || fail "$library exports $foreign"
done

says() {
  local words=$1 output
  shift
  output=$("$@" 2>&1) || fail "$*: $output"
  grep -q "$words" <<<"$output" || fail "$* said $output"
}
says 'hca_id:.*softverbs0' "$run" ibv_devinfo
says softverbs0 env LD_LIBRARY_PATH="$dropin" ibv_devices
quiet consumer_configure cmake -S "$source_dir/tests/package/consumer" -B "$work/consumer" \
  -G Ninja -DCMAKE_PREFIX_PATH="$prefix"
quiet consumer cmake --build "$work/consumer"
says softverbs0 "$work/consumer/consumer"

# --- Who wants tests and lacks GoogleTest is told so.
output=$(cmake -S "$work/softverbs" -B "$work/build" -DBUILD_TESTING=ON 2>&1) && fail "tests without GoogleTest"
grep -q 'libgtest-dev libgmock-dev' <<<"$output" || fail "without GoogleTest cmake said $output"
echo "configured, built, packed, installed, run alone"
