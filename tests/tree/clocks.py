"""Who asks the machine for the time. Everybody else is handed a clock, so that a simulation has them all."""

import re

# The only files that ask the system. All others call what these declare.
ASKS_SYSTEM = {"common/base/clock.h", "common/base/clocks.h"}
SYSTEM = re.compile(r"\b(?:clock_gettime|gettimeofday|timespec_get|absl::Now|absl::GetCurrentTimeNanos|std::time|(?:system|steady|high_resolution)_clock)\b")

# What those declare, by name, or as the function of an object that the machine's clock is.
MACHINE = re.compile(r"(?<![.>:])\b(?:MonotonicNs|WallNs|BootNs|MachineWallTime|MachineBootTime|MachineClocks)\b|ClientClock::Real\(\)")
# In server/ and client/: who may say one of those names, and why.
NAMES_MACHINE = {
    # The threads' own loops. A simulation has none of these, but polls the parts itself.
    "server/main.cc", "server/main/control/disk_thread.cc", "server/main/control/server_threads.cc", "server/main/control/startup_answers.cc",
    "server/memory/tier/tier_reads.cc", "server/memory/tier/tier_thread.cc",
    "client/api/driver.cc",
    # Where a user's client gets its clock.
    "client/api/async_client.cc", "client/api/client.cc", "client/api/walker.cc",
    # Where a process gets its clocks.
    "server/main/flags/server_flags.cc", "server/main/control/server_disk.cc",
    # How long something took, for a line of the log.
    "server/main/control/server_memory.cc", "server/main/control/server_workers.cc", "server/memory/store/store.cc",
}
# `= MonotonicNs;` and the like.
DEFAULT = re.compile(r"=\s*(?:&\s*)?(?:gannet::)?(?:MonotonicNs|WallNs|BootNs|MachineWallTime|MachineBootTime|MachineClocks(?:\(\))?)\s*[;,)]")


def check_clocks(tree):
    """Time comes from a clock that was handed down. There is no default that asks the machine: one that is left out unseen
    works, but not in a simulation."""
    for path in tree.sources:
        name = path.as_posix()
        if path.parts[0] not in ("client", "common", "server") or path.parts[:2] == ("client", "example"):
            continue
        code = tree.code(path)

        def each(pattern, what):
            for match in pattern.finditer(code):
                tree.found(f"{name}:{tree.line(path, match.start())}: {match.group().strip()}: {what}")

        if name not in ASKS_SYSTEM:
            each(SYSTEM, "only common/base/clock.h and clocks.h ask the system for the time")
        if path.parts[0] == "common":
            continue
        if name not in NAMES_MACHINE:
            each(MACHINE, "asks the machine for the time; hand the clock down")
        if path.suffix == ".h":
            each(DEFAULT, "a default that asks the machine; hand the clock down")
