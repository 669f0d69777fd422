"""Measures what an item costs in memory beside its key and value, by all that the server's process takes."""

import os

KEY_BYTES = 16


def resident_bytes():
    """Returns the resident memory of this process's only child."""
    with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children", encoding="ascii") as file:
        child = file.read().split()[-1]
    with open(f"/proc/{child}/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmRSS"].split()[0]) * 1024


def one(bench, backend, start, value_bytes, items):
    bench.say(f"{items:,} items of {KEY_BYTES} + {value_bytes} bytes in {backend}")
    with start() as address:
        before = resident_bytes()
        bench.kvload(address, "--phase=load", f"--records={items}", f"--key_size={KEY_BYTES}",
                     f"--value_size={value_bytes}", "--depth=32", backend=backend)
        after = resident_bytes()
    payload = items * (KEY_BYTES + value_bytes)
    return {"backend": backend, "value_bytes": value_bytes, "items": items, "before": before,
            "resident": after, "beside_payload": (after - payload) / items}


def measure(bench, scale, stores):
    """`stores(memory)`: by name, functions that start a server with so much memory."""
    rows = []
    for part in scale:
        for backend, start in stores(part["memory"]).items():
            rows.append(one(bench, backend, start, part["value_bytes"], part["items"]))
    return rows
