"""Compares GETs whose locations are known with bare READs of the same bytes at the same addresses.

Neither kind of run checks values. The two kinds take turns, and the best run of each counts, because
the machine's other work can only slow a run down.
"""

import contextlib

import servers


@contextlib.contextmanager
def filled(bench, part):
    """Starts a server that holds the part's items. Gives its address."""
    bench.say(f"{part['records']:,} items of {part['value_size']} bytes")
    memory, slots = str(part["memory"]), str(part["slots"])
    if part["value_size"] == 64:
        # filled_server stores items of this size itself, without a network.
        command = [f"{bench.build}/bin/filled_server", str(part["records"]), memory, slots]
        with servers.ready_server(command) as address:
            yield address
        return
    flags = [f"--memory={memory}", f"--index_slots={slots}"]
    with servers.gannet(bench.build, *flags) as address:
        bench.kvload(address, "--phase=load", f"--records={part['records']}",
                     f"--value_size={part['value_size']}", "--depth=32")
        yield address


class Span:
    def __init__(self, bench, address, part, operations):
        self.bench, self.address, self.part = bench, address, part
        self.operations = f"--operations={operations}"
        one = self.gets(1, ["--records=1"], 1 << 20)
        self.read_bytes = round(one["verbs"]["get"]["read_bytes_per_op"])

    def gets(self, depth, keys, cache):
        return self.bench.kvload(
            self.address, "--phase=run", "--workload=c", "--distribution=uniform", "--warm_up",
            "--verify=false", f"--value_size={self.part['value_size']}", self.operations,
            f"--depth={depth}", f"--location_cache={cache}", *keys)

    def raw_reads(self, depth, keys):
        return self.bench.kvload(self.address, "--workload=raw_read", "--raw_items",
                                 f"--value_size={self.read_bytes}", self.operations,
                                 f"--depth={depth}", *keys)

    def compare(self, depth, keys, cache, repeats):
        runs = {"get": [], "raw": []}
        for _ in range(repeats):
            runs["get"].append(self.gets(depth, keys, cache))
            runs["raw"].append(self.raw_reads(depth, keys))
        return {what: best(of, depth) for what, of in runs.items()}

    def working_set(self, stride, cache, repeats):
        used = self.part["records"] // stride
        self.bench.say(f"  {used:,} of them")
        keys = [f"--records={self.part['records']}", f"--stride={stride}"]
        return {"records_used": used, "location_cache": cache, "repeats": repeats,
                "latency": self.compare(1, keys, cache, repeats),
                "throughput": self.compare(32, keys, cache, repeats)}


def measure(bench, part, operations):
    with filled(bench, part) as address:
        span = Span(bench, address, part, operations)
        return {"value_size": part["value_size"], "records": part["records"],
                "item_bytes_read": span.read_bytes,
                "sets": [span.working_set(*each) for each in part["sets"]],
                "hot": span.compare(1, ["--records=1"], 1 << 20, 2)}


def primary(report):
    """Returns the figures of a run's GETs or bare READs."""
    ops = report["ops"]
    return ops["get"] if "get" in ops else ops["raw_read"]


def best(reports, depth):
    if depth == 1:
        report = min(reports, key=lambda one: primary(one)["p50_us"])
    else:
        report = max(reports, key=lambda one: one["ops_per_second"])
    figures = {"p50_us": primary(report)["p50_us"], "p99_us": primary(report)["p99_us"],
               "ops_per_second": report["ops_per_second"],
               "all_p50_us": [primary(one)["p50_us"] for one in reports],
               "all_ops_per_second": [one["ops_per_second"] for one in reports]}
    figures.update({key: report[key] for key in ["spread"] if key in report})
    if "get" in report["verbs"]:
        cost = report["verbs"]["get"]
        figures.update({key: cost[key]
                        for key in ["reads_per_op", "posts_per_op", "completions_per_op"]})
    return figures
