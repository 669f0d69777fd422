"""Compares GETs and PUTs of long values, in registered memory, with bare READs of as many bytes.

Beside them is what bare verbs reach with the same round trips and copies (verbs_floor), for values
up to FLOOR_BYTES_MAX. The GETs' values are checked by sampled words. The kinds of runs take turns, and the best run of each
counts, because the machine's other work can only slow a run down.
"""

import servers

MIB = 1 << 20
FLOOR_BYTES_MAX = MIB  # longer values would take gigabytes for their messages
FLOOR_BYTES_PER_RUN = 64 * MIB


def measure(bench, scale):
    rows = []
    for size, depth, records in scale["sizes"]:
        bench.say(f"values of {size:,} bytes, {depth} in flight")
        operations = max(scale["operations_min"], scale["bytes"] // size)
        with servers.gannet(bench.build, f"--memory={scale['memory']}") as address:
            rows.append(one_size(bench, address, size, depth, records, operations, scale["runs"]))
        rows[-1]["floor"] = floor_of(bench, size, depth, records, **scale["floor"])
    return rows


def floor_of(bench, size, depth, records, operations, runs):
    if size > FLOOR_BYTES_MAX:
        return None
    operations = max(depth, min(operations, FLOOR_BYTES_PER_RUN // size))
    return bench.verbs_floor(f"--size={size}", f"--depth={depth}", f"--places={records}",
                             f"--operations={operations}", f"--runs={runs}")


def one_size(bench, address, size, depth, records, operations, runs):
    flags = [f"--value_size={size}", f"--records={records}", f"--depth={depth}",
             "--distribution=uniform", f"--operations={operations}", "--deadline_ms=60000"]
    bench.kvload(address, "--phase=load", *flags)
    kinds = {"get": ["--phase=run", "--workload=c", "--warm_up"],
             "raw_read": ["--workload=raw_read", "--raw_items"],
             "put": ["--phase=run", "--workload=w"]}
    best = {}
    for _ in range(runs):
        for kind, how in kinds.items():
            report = bench.kvload(address, *how, *flags)
            per_second = report["ops_per_second"]
            if kind not in best or per_second > best[kind]["per_second"]:
                best[kind] = {"per_second": per_second, "p50_us": report["ops"][kind]["p50_us"],
                              "reads_per_op": report["verbs"][kind]["reads_per_op"],
                              "wrong_values": report["wrong_values"]}
    return {"size": size, "depth": depth, "records": records, "operations": operations, "runs": runs,
            **best}
