"""What becomes of a server as its memory fills: from 10^3 items to 10^7 without a flag but --memory, and PUTs into a
full store that evicts beside PUTs into one with room."""

import contextlib
import json
import statistics
import subprocess

import servers

KEY_BYTES = 16
# There are so many keys that hardly any PUT meets a key that was put before.
SPARSE_RECORDS = 10**9
# The load of the full server, as a multiple of its memory.
OVERFILL = 1.3


def stats_of(bench, address):
    said = subprocess.run([f"{bench.build}/bin/kvcli", "--quiet", "--device=soft", "--deadline_ms=60000",
                           f"--server={address}", "--json", "stats"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(said.stdout)


# --- many items

def many_items(bench, scale):
    """Rows by items, all in one server that was told only how much memory it may have."""
    rows = []
    with servers.gannet(bench.build, f"--memory={scale['memory']}") as address:
        items = 1000
        while items <= scale["items_max"]:
            bench.say(f"{items:,} items")
            sizes = [f"--records={items}", f"--key_size={KEY_BYTES}", f"--value_size={scale['value_bytes']}"]
            bench.kvload(address, "--phase=load", "--depth=32", *sizes)
            report = bench.kvload(address, "--phase=run", "--workload=c", "--distribution=uniform", "--location_cache=0",
                                  "--depth=16", f"--operations={scale['gets']}", *sizes)
            stats = stats_of(bench, address)
            rows.append({"items": items, "stored": stats["items"], "slots": stats["slots_total"],
                         "growths": stats["index_growths"], "heap_share": stats["heap_bytes"] / stats["heap_total"],
                         "reads_per_get": report["verbs"]["get"]["reads_per_op"],
                         "by_rpc_per_get": report["verbs"]["get"]["by_rpc_per_op"],
                         "not_found": report["ops"]["get"]["not_found"], "wrong_values": report["wrong_values"],
                         "refused": stats["refused_heap_full"] + stats["refused_index_full"]})
            items *= 10
    return {"memory": scale["memory"], "value_bytes": scale["value_bytes"], "rows": rows}


# --- PUTs into a full store

def put_run(bench, address, value_bytes, depth, seed, scale):
    before = stats_of(bench, address)
    report = bench.kvload(address, "--phase=run", "--workload=w", "--distribution=uniform",
                          f"--records={SPARSE_RECORDS}", f"--key_size={KEY_BYTES}", f"--value_size={value_bytes}",
                          f"--depth={depth}", f"--rate={scale['rate']}", f"--seconds={scale['seconds']}",
                          f"--seed={seed}", "--deadline_ms=60000")
    after = stats_of(bench, address)
    put = report["ops"]["put"]
    evicted = after["items_evicted"] - before["items_evicted"]
    return {"p50_us": put["p50_us"], "p99_us": put["p99_us"], "p999_us": put["p999_us"], "count": put["count"],
            "evicted": evicted, "evicted_by_writes": after["evicted_by_writes"] - before["evicted_by_writes"],
            "refused": after["refused_heap_full"] + after["refused_index_full"]}


def median(runs, figure):
    return statistics.median(run[figure] for run in runs)


def full_puts(bench, scale):
    """Rows by size and depth. The two servers take turns, and the medians of their runs count."""
    rows = []
    for value_bytes in scale["values"]:
        with contextlib.ExitStack() as stack:
            addresses = {name: stack.enter_context(servers.gannet(bench.build, f"--memory={memory}", "--on_full=evict"))
                         for name, memory in scale["memories"].items()}
            items = int(scale["memories"]["full"] * OVERFILL / (value_bytes + KEY_BYTES))
            bench.kvload(addresses["full"], "--phase=load", f"--records={items}", f"--key_size={KEY_BYTES}",
                         f"--value_size={value_bytes}", "--depth=32")
            for depth in scale["depths"]:
                runs = {name: [] for name in addresses}
                for turn in range(scale["runs"]):
                    for name, address in addresses.items():
                        runs[name].append(put_run(bench, address, value_bytes, depth, 1000 * depth + turn, scale))
                row = {"value_bytes": value_bytes, "depth": depth, "runs": runs,
                       **{name: {figure: median(of, figure) for figure in ("p50_us", "p99_us", "p999_us")}
                          for name, of in runs.items()}}
                bench.say(f"{value_bytes} B, depth {depth}: {row['room']} with room, {row['full']} full, "
                          f"{runs['full'][-1]}")
                rows.append(row)
    return {"rate": scale["rate"], "seconds": scale["seconds"], "memories": scale["memories"], "rows": rows}
