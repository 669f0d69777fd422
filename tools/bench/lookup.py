"""Counts the verbs of lookups and writes, which are the same on every machine.

Counts READs by fill of the index and with a small location cache. Counts posts and completions by
depth, of MultiGets, and of the server under PUTs.
"""

import os

import servers

SLOTS_PER_BUCKET, BUCKET_BYTES, ITEM_BYTES = 14, 128, 112


def filled(build, items, slots, churn=0):
    """Starts a server that holds `items` items of 64 bytes, which it stores without a network."""
    memory = slots * BUCKET_BYTES // SLOTS_PER_BUCKET + items * ITEM_BYTES * 11 // 10 + (64 << 20)
    return servers.ready_server([f"{build}/bin/filled_server", str(items), str(memory), str(slots),
                                 str(churn)])


class Lookup:
    def __init__(self, bench, scale):
        self.bench, self.scale = bench, scale

    def gets(self, address, records, operations, *flags):
        return self.bench.kvload(address, "--phase=run", "--workload=c", "--verify=false",
                                 "--value_size=64", f"--records={records}",
                                 f"--operations={operations}", *flags)

    def by_fill(self, fill):
        """Counts READs of hits and misses, after every key was deleted and inserted again twice."""
        slots = self.scale["index_buckets"] * SLOTS_PER_BUCKET
        items = int(fill * slots)
        uniform = ["--distribution=uniform", "--location_cache=0"]
        with filled(self.bench.build, items, slots, churn=2) as address:
            hits = self.gets(address, items, items, "--depth=32", *uniform)
            # One at a time, because a client believes a miss only if the READ was quick. Nearly none
            # of so many keys exists.
            misses = self.gets(address, 1000 * items, self.scale["misses"], "--depth=1", *uniform)
        cold = hits["verbs"]["get_cold"]["reads_per_op"]
        return {"fill": hits["index_fill"], "keys": items, "reads_per_cold_get": cold,
                "index_reads_per_hit": cold - 1,
                "index_reads_per_miss": misses["verbs"]["get_miss"]["reads_per_op"]}

    def popular(self):
        """Counts READs under zipf 0.99, with room for 1 % of the locations in a cache that is empty at first."""
        items = self.scale["zipf_items"]
        cache = items // 100 * 16
        with filled(self.bench.build, items, items * 5 // 4) as address:
            report = self.gets(address, items, self.scale["zipf_gets"], "--distribution=zipfian",
                               "--depth=32", f"--location_cache={cache}")
        return {"keys": items, "location_cache": cache, "gets": report["operations"],
                "reads_per_get": report["verbs"]["get"]["reads_per_op"]}

    def by_depth(self):
        items, rows = self.scale["depth_items"], []
        with filled(self.bench.build, items, items * 5 // 4) as address:
            for depth in [1, 16, 32, 128]:
                for kind, cache in [("get_warm", 64 << 20), ("get_cold", 0)]:
                    warm_up = ["--warm_up"] if kind == "get_warm" else []
                    report = self.gets(address, items, 3 * items, "--distribution=uniform",
                                       f"--depth={depth}", f"--location_cache={cache}", *warm_up)
                    rows.append({"depth": depth, "kind": kind, **report["verbs"][kind]})
        return rows

    def puts(self):
        """Counts the verbs of PUTs to existing keys, by four clients with 32 in flight each."""
        items = self.scale["depth_items"]
        flags = ["--phase=load", f"--records={items}", "--value_size=64", "--threads=4", "--depth=32"]
        with servers.gannet(self.bench.build, "--memory=1G") as address:
            self.bench.kvload(address, *flags)
            report = self.bench.kvload(address, *flags)
        server = report["server_verbs"]
        figures = {f"server_{name}_per_put": count / report["operations"]
                   for name, count in server.items()}
        return {**report["verbs"]["insert"], **figures}


def measure(bench, scale):
    lookup = Lookup(bench, scale)
    result = {"by_fill": []}
    for fill in [0.50, 0.75, 0.85, 0.90, 0.95]:
        bench.say(f"index {fill:.0%} full")
        result["by_fill"].append(lookup.by_fill(fill))
    bench.say(f"{scale['zipf_items']:,} keys, the locations of 1 % cached")
    result["zipf"] = lookup.popular()
    bench.say("posts and completions")
    result["by_depth"] = lookup.by_depth()
    result["puts"] = lookup.puts()
    test = os.path.join(bench.build, "tests/client_multi_get_cost_test")
    result["multi_get"] = bench.json_lines([test], servers.softverbs(bench.build))
    return result
