#!/usr/bin/env python3
"""Renders the results of tools/bench/bench as Markdown.

    render.py BENCH.json              # prints the tables
    render.py BENCH.json PAGE.md...   # replaces the text between the markers of each measured group, in
                                      # the page that has them; in a page with markers of the summary,
                                      # replaces the summary
"""

import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../figures"))
from tables import SCALE, has_markers, insert, number, table  # noqa: E402


SUMMARY = "./dev bench, its summary"


def of(figures, *path, digits=2, factor=1.0):
    """Returns the figure at a path of keys, or '-' if there is none."""
    for key in path:
        figures = (figures or {}).get(key)
    return number(None if figures is None else figures * factor, digits)


def heading(result):
    machine = result["machine"]
    before, after = result["load_average_before"], result["load_average_after"]
    return (f"Commit {result['commit']}, {result['build']}, {result['date']}: {machine['cpu']}, "
            f"{machine['cores']} cores, {machine['memory_gib']} GiB, Linux {machine['kernel']}, "
            f"transparent huge pages `{machine['transparent_huge_pages']}`, of shared memory "
            f"`{machine['transparent_huge_pages_of_shared_memory']}`, load "
            f"average {before:.1f} before and {after:.1f} after (`./dev bench {result['command']}`).")


def device(result):
    floor, perftest = result["floor"], result["perftest"]
    half_ring = floor["ring_64_round_trip"]["p50_ns"] / 2
    send = (perftest["send_64"] or {}).get("typical_us")
    ratio = number(None if send is None else send * 1000 / half_ring, 2)
    rows = [
        ["READ of 64 B, hot (`ib_read_lat`)", of(perftest, "read_64", "typical_us"),
         of(perftest, "read_64", "p99_us")],
        ["READ of 1 KiB, hot (`ib_read_lat`)", of(perftest, "read_1024", "typical_us"),
         of(perftest, "read_1024", "p99_us")],
        ["memcpy of 64 B, hot", of(floor, "memcpy_64_hot", "p50_ns", digits=3, factor=1e-3),
         of(floor, "memcpy_64_hot", "p99_ns", digits=3, factor=1e-3)],
        [f"memcpy of 64 B, random over {floor['footprint'] / 2**30:.1f} GiB",
         of(floor, "memcpy_64_random", "p50_ns", digits=3, factor=1e-3),
         of(floor, "memcpy_64_random", "p99_ns", digits=3, factor=1e-3)],
        ["SEND of 64 B, one way, both polling (`ib_send_lat`)",
         of(perftest, "send_64", "typical_us"), of(perftest, "send_64", "p99_us")],
        ["bare ring in shared memory, 64 B, half a round trip", number(half_ring / 1000, 3),
         of(floor, "ring_64_round_trip", "p99_ns", digits=3, factor=0.5e-3)],
    ]
    return ("**The device and its floor**, microseconds\n\n" + table(["", "typical", "p99"], rows) +
            f"\n\nA SEND takes {ratio} times half the ring's round trip (bound: 3).")


def instructions(result):
    rows = []
    for name, counted in sorted(result["instructions"].items()):
        for line in counted:
            rows.append([f"`{name}`", number(line["own"], 1), number(line["verbs"], 1),
                         number(line["total"], 1)])
    return ("**Instructions per operation**, counted by callgrind. Tests with these names limit "
            "them\n\n" + table(["test", "own", "inside verbs calls", "together"], rows))


def ratio(figures, figure):
    get, raw = figures["get"][figure], figures["raw"][figure]
    return get / raw if raw else 0


LATENCY_AIMS = {64: 1.25, 1024: 1.6}


def spans(result):
    rows = []
    for span in result["spans"]:
        for keys in span["sets"]:
            latency, throughput = keys["latency"], keys["throughput"]
            spread = latency["raw"]["spread"]
            rows.append([
                f"{span['value_size']} B ({span['item_bytes_read']} READ)",
                f"{keys['records_used']:,} of {span['records']:,}",
                f"{spread['span_bytes'] / 2**30:.2f} GiB, {spread['pages']:,} pages",
                f"{keys['location_cache'] / 2**20:,.0f} MiB",
                f"{latency['get']['p50_us']:.2f} / {latency['get']['p99_us']:.2f}",
                f"{latency['raw']['p50_us']:.2f} / {latency['raw']['p99_us']:.2f}",
                f"{ratio(latency, 'p50_us'):.2f} (aim: at most {LATENCY_AIMS[span['value_size']]})",
                f"{throughput['get']['ops_per_second']:,.0f}",
                f"{throughput['raw']['ops_per_second']:,.0f}",
                f"{ratio(throughput, 'ops_per_second'):.2f} (aim: at least 0.75)",
                f"{latency['get']['reads_per_op']:.3f}",
            ])
    header = ["value", "keys", "READ from", "location cache", "GET p50 / p99 us",
              "bare READ p50 / p99 us", "ratio", "GETs/s at depth 32", "bare READs/s", "ratio",
              "READs per GET"]
    hot = ", ".join(f"{span['value_size']} B: {ratio(span['hot'], 'p50_us'):.2f}"
                    for span in result["spans"])
    return ("**GETs beside bare READs** of the same bytes at the same addresses: uniformly random keys, "
            "locations known, depth 1 for latency\n\n" + table(header, rows) +
            f"\n\nRatio of the p50s for a single key, whose data stays in the processor's caches: {hot}.")


def verbs(result):
    rows = []
    for row in result["ycsb"]:
        if (row["backend"], row["workload"], row["aim"]) != ("gannet", "b", "throughput"):
            continue
        for name, label in [("get_warm", "GET, location known"), ("get_cold", "GET, not known"),
                            ("put", "PUT")]:
            cost = row["verbs"].get(name)
            figures = ["reads_per_op", "read_bytes_per_op", "sends_per_op", "posts_per_op",
                       "completions_per_op"]
            rows.append([label, *(of(cost, figure, digits=3) for figure in figures)])
    return ("**Verbs per operation**, workload b with many in flight\n\n" +
            table(["", "READs", "bytes READ", "SENDs", "posts", "completions"], rows))


STORES = ["gannet", "redis", "memcached"]


def setting(row):
    text = f"{row['threads']} x {row['depth']}"
    return f"{text} over {row['connections']}" if row["connections"] > 1 else text


def ycsb(result):
    """Returns the tables of the stores: one operation at a time, and the best of all settings."""
    parts = []
    for aim, heading in [("throughput", "the best of all settings"), ("latency", "one operation at a time")]:
        rows = []
        for row in sorted((r for r in result["ycsb"] if r["aim"] == aim),
                          key=lambda r: (r["workload"], STORES.index(r["backend"]))):
            rows.append([row["workload"], row["backend"], number(row["ops_per_second"]),
                         setting(row), of(row["ops"], "get", "p50_us"),
                         of(row["ops"], "get", "p99_us"), of(row["ops"], "put", "p50_us"),
                         number(row["client_cpu_seconds_per_million"], 2),
                         number(row["server_cpu_seconds_per_million"], 3),
                         number(row["verbs"].get("get", {}).get("reads_per_op"), 3)])
        header = ["workload", "store", "operations/s", "threads x in flight of each", "GET p50 us",
                  "GET p99 us", "PUT p50 us", "client CPU s per million",
                  "server CPU s per million", "READs per GET"]
        parts.append(f"*{heading[0].upper()}{heading[1:]}*\n\n" + table(header, rows))
    first = next(row for row in result["ycsb"] if row["aim"] == "throughput")
    return (f"**Side by side**: {first['records']:,} records, 16-byte keys, {first['value_size']}-byte "
            f"values, zipfian (d: latest), every value checked; the best of {first['of_runs']} runs with "
            "several numbers of threads, of operations in flight and, for Redis, of connections (\"over\")"
            "\n\n" + "\n\n".join(parts) + "\n\n" + own_generators(result))


def own_generators(result):
    own = result["own_generators"]
    redis = [[row["clients"], row["threads"], row["pipeline"], number(row["gets_per_second"]),
              number(row["puts_per_second"])] for row in own["redis"]]
    memcached = [[row["clients"], row["threads"], row["keys"], number(row["ops_per_second"])]
                 for row in own["memcached"]]
    text = ("*`redis-benchmark`, Redis' own generator: uniformly random keys, no values checked*\n\n" +
            table(["connections", "threads", "pipeline", "GETs/s", "SETs/s"], redis))
    if not memcached:
        return text + "\n\n(memaslap was not installed.)"
    return (text + "\n\n*memaslap (`memcaslap`) of libmemcached: 90 % GETs, no values checked*\n\n" +
            table(["connections", "threads", "keys of a multi-get", "operations/s"], memcached))


def best(rows, figure):
    return number(max((row[figure] for row in rows), default=None))


def side_by_side(result):
    """Returns the table of the stores for the README."""
    rows_of = {(row["workload"], row["backend"]): row
               for row in result["ycsb"] if row["aim"] == "throughput"}
    mixes = {"a": "50 % PUT", "b": "5 % PUT", "c": "GET only", "d": "5 % insert, latest",
             "f": "50 % read-modify-write"}
    rows = []
    for workload, mix in mixes.items():
        ours = rows_of[workload, "gannet"]
        rows.append([f"{workload}: {mix}", *(f"{number(rows_of[workload, store]['ops_per_second'])} "
                                             f"({setting(rows_of[workload, store])})" for store in STORES),
                     of(ours["ops"], "get", "p50_us", digits=1),
                     of(ours["verbs"], "get", "reads_per_op", digits=3),
                     number(ours["server_cpu_seconds_per_million"], 3)])
    own = result["own_generators"]
    text = table(["workload", "Gannet: operations/s (threads x in flight)", "Redis", "memcached",
                  "Gannet: GET p50 us", "READs per GET", "server CPU s per million"], rows)
    text += ("\n\nThe best of several settings and runs for each; docs/measurements.md has all. Other generators, "
             f"which check no values: `redis-benchmark` got {best(own['redis'], 'gets_per_second')} GETs/s and "
             f"{best(own['redis'], 'puts_per_second')} SETs/s out of Redis")
    if own["memcached"]:
        text += f", memaslap {best(own['memcached'], 'ops_per_second')} operations/s (90 % GETs) out of memcached"
    return text + "."


def crowd(result):
    """Returns the tables of many clients on few cores."""
    measured = result["crowd"]
    rows_of = {(row["mode"], row["workload"], row["depth"], row["clients"], row["backend"]): row
               for row in measured["totals"]}
    parts = []
    for mode, workload, depth in dict.fromkeys(key[:3] for key in rows_of):
        parts.append(f"*Workload {workload}, depth {depth}, {mode}*\n\n" +
                     crowd_table(rows_of, (mode, workload, depth)))
    return (f"**A crowd**: many clients run for {result['crowd']['seconds']:g} s at the same time, as kvload processes or "
            "as threads of one kvload; 50,000 records, 100-byte values. Gannet's clients first read all records once, to "
            "learn their locations. For processes, the p50 is the median of the processes' p50s, and the p99 is the worst "
            "process's. *longest* is the slowest operation of all. Aims: every sum is at least 0.7 of the best, 5 times the "
            "other stores' at depth 1, and twice theirs at depth 32\n\n" +
            "\n\n".join(parts) + "\n\n" + neighbours(measured) + "\n\n" + idle(measured))


def crowd_table(rows_of, setting):
    counts = [key[3] for key in rows_of if key[:3] == setting and key[4] == STORES[0]]
    best = max(rows_of[*setting, count, STORES[0]]["ops_per_second"] for count in counts)
    rows = []
    for count in counts:
        ours, *others = (rows_of[*setting, count, store] for store in STORES)
        rows.append([count, number(ours["ops_per_second"]), number(ours["ops_per_second"] / best, 2),
                     *(f"{number(other['ops_per_second'])} "
                       f"({number(ours['ops_per_second'] / other['ops_per_second'], 1)})" for other in others),
                     of(ours, "get", "p50_us"), of(ours, "get", "p99_us", digits=0),
                     of(ours, "get", "max_us", digits=0), of(ours, "put", "p99_us", digits=0),
                     of(ours, "put", "max_us", digits=0)])
    return table(["clients", "operations/s", "of the best", "Redis (times)", "memcached (times)",
                  "GET p50 us", "p99", "longest", "PUT p99", "longest"], rows)


def neighbours(measured):
    alone = {(row["backend"], row["depth"]): row["ops_per_second"]
             for row in measured["neighbours"]
             if row["neighbours"] == measured["neighbours"][0]["neighbours"]}
    rows = [[row["backend"], row["depth"], row["neighbours"], number(row["ops_per_second"]),
             number(row["ops_per_second"] / alone[row["backend"], row["depth"]], 2),
             of(row, "get", "p99_us", digits=0), of(row, "put", "p99_us", digits=0)]
            for row in measured["neighbours"]]
    return ("*One client beside shells in busy loops*\n\n" +
            table(["store", "depth", "loops", "operations/s", "relative to no loops", "GET p99 us",
                   "PUT p99 us"], rows))


def idle(measured):
    figures = measured["idle"]
    return (f"A server and {figures['clients']} connected, idle clients (`kvcli` without a command) use "
            f"{100 * figures['idle_core_share']:.1f} % of a core together (aim: 1 %). A client with "
            f"{number(figures['steady_gets_per_second'])} GETs a second uses "
            f"{100 * figures['steady_core_share']:.1f} % (aim: 3 %). A loop that only sleeps 1,000 times "
            f"a second uses {100 * figures['sleeping_core_share']:.1f} % on this machine.")


FILL_BOUNDS = {50: 1.000, 75: 1.000, 85: 1.002, 90: 1.006, 95: 1.018}


def by_fill(result):
    lookup = result["lookup"]
    rows = []
    for row in lookup["by_fill"]:
        percent = round(100 * row["fill"])
        ninety = percent == 90
        rows.append([
            f"{percent} %", number(row["keys"]),
            f"{row['index_reads_per_hit']:.3f} (aim: at most {FILL_BOUNDS[percent]:.3f})",
            f"{row['reads_per_cold_get']:.3f}" + (" (aim: at most 2.02)" if ninety else ""),
            f"{row['index_reads_per_miss']:.3f}" + (" (aim: at most 1.02)" if ninety else "")])
    return ("**READs by fill of the index** (share of all slots in use), after every key was deleted and "
            "inserted again twice\n\n" + table(["fill", "keys", "READs of the index per hit",
                                       "READs per cold GET", "READs per miss"], rows))


def popular(result):
    lookup = result["lookup"]
    zipf = lookup["zipf"]
    return (f"**Popular keys**: zipf 0.99 over {zipf['keys']:,} keys, with a location cache of "
            f"{zipf['location_cache']:,} bytes (room for 1 % of the keys) that is empty at first. "
            f"{zipf['gets']:,} GETs took {zipf['reads_per_get']:.3f} READs each (aim: at most 1.33).")


def shared(result):
    lookup = result["lookup"]
    rows = [[f"GET, {'location known' if row['kind'] == 'get_warm' else 'not known'}, {row['depth']} in "
             "flight", number(row["reads_per_op"], 3), number(row["posts_per_op"], 3),
             number(row["completions_per_op"], 3)] for row in lookup["by_depth"]]
    for row in lookup["multi_get"]:
        rows.append([f"MultiGet of {row['keys']} keys, {row['kind']}: all of it", row["reads"],
                     f"{row['posts']} (one a round trip)", row["completions"]])
    puts = lookup["puts"]
    posts = puts["server_reply_posts_per_put"] + puts["server_receive_posts_per_put"]
    rows.append(["PUT, four clients with 32 in flight each: on the client", number(puts["reads_per_op"], 3),
                 number(puts["posts_per_op"], 3), number(puts["completions_per_op"], 3)])
    rows.append(["the same PUTs on the server (posts of replies and receives; completions of sends)", "-",
                 f"{posts:.3f} (aim: at most 0.125)",
                 f"{puts['server_send_completions_per_put']:.3f} (aim: at most 0.031)"])
    return ("**Posts and completions per operation**. Aim for GETs with 16 or more in flight: at most 0.125 "
            "of each\n\n" + table(["", "READs", "posts", "completions"], rows))


def growth(result):
    return "\n\n".join(f"**By {what}**, counts only\n\n" + SCALE[what](result["growth"][what])
                       for what in ["items", "sessions"])


def footprint(result):
    rows = [[row["backend"], f"{row['value_bytes']}", f"{row['items']:,}",
             f"{row['resident'] / (1 << 20):,.0f}", f"{row['beside_payload']:.1f}"]
            for row in result["footprint"]]
    return table(["", "bytes of a value", "items with keys of 16 bytes", "MiB that the process takes",
                  "bytes an item beside key and value"], rows)


def memory(result):
    names = list(dict.fromkeys(row["store"] for row in result["memory"]))
    places = list(dict.fromkeys((row["workload"], row["share"], row["memory"])
                                for row in result["memory"]))
    rows = []
    for workload, share, size in places:
        ratios = {row["store"]: row["hit_ratio"] for row in result["memory"]
                  if (row["workload"], row["share"]) == (workload, share)}
        rows.append([workload, f"{share:.0%}", f"{size / (1 << 20):,.0f}",
                     *(f"{100 * ratios[name]:.2f}" for name in names)])
    return ("**Hit ratios of GETs** in %, where each process takes the same memory (resident, "
            "within 1 %)\n\n" +
            table(["", "of the footprint", "MiB", *names], rows))


def many_items(result):
    measured = result["many_items"]
    rows = [[f"{row['items']:,}", f"{row['slots']:,}", row["growths"], number(row["reads_per_get"], 3),
             number(row["by_rpc_per_get"], 4), f"{row['heap_share']:.1%}",
             row["not_found"] + row["wrong_values"] + row["refused"]] for row in measured["rows"]]
    return (f"**From a thousand items to {measured['rows'][-1]['items']:,}** of 16 + {measured['value_bytes']} bytes, in one "
            f"`kvserver --memory={measured['memory']}` without another flag; GETs of uniformly random keys, no location known\n\n" +
            table(["items", "slots", "growths so far", "READs per GET", "GETs by RPC", "of the heap in use",
                   "misses, wrong values and refused PUTs"], rows))


def full_puts(result):
    measured = result["full_puts"]
    rows = []
    for row in measured["rows"]:
        full = row["runs"]["full"]
        evicted = sum(run["evicted"] for run in full)
        share = sum(run["evicted_by_writes"] for run in full) / evicted if evicted else 0
        rows.append([f"{row['value_bytes']} B", row["depth"],
                     *(f"{row[name]['p50_us']:.0f} / {row[name]['p99_us']:.0f} / {row[name]['p999_us']:.0f}"
                       for name in ["room", "full"]),
                     f"{row['full']['p99_us'] / row['room']['p99_us']:.2f} (aim: at most 2)",
                     number(evicted / sum(run["count"] for run in full), 2), f"{share:.0%}"])
    return (f"**PUTs of new keys with room and without**, {measured['rate']:,} a second for {measured['seconds']} s, `--on_full=evict` "
            f"with {measured['memories']['room'] >> 20:,} MiB and with {measured['memories']['full'] >> 20:,} MiB, which are full; medians "
            f"of {len(measured['rows'][0]['runs']['full'])} runs each, in turns\n\n" +
            table(["value", "in flight", "with room: p50 / p99 / p99.9 us", "full", "ratio of the p99s", "evictions a PUT",
                   "of them by writes"], rows))


def large(result):
    rows = []
    for row in result["large"]:
        get, raw, put = row["get"], row["raw_read"], row["put"]
        size = row["size"]
        name = f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
        aim = 0.85 if row["depth"] > 1 else 0.9
        rows.append([name, row["depth"], number(raw["per_second"] * size / 1e9, 2),
                     number(get["per_second"] * size / 1e9, 2),
                     f"{get['per_second'] / raw['per_second']:.2f} (aim: at least {aim})",
                     number(put["per_second"] * size / 1e9, 2),
                     f"{put['per_second'] / raw['per_second']:.2f}" +
                     ("" if row["depth"] > 1 else " (aim: at least 0.8)"),
                     number(get["reads_per_op"], 2), number(get["p50_us"], 1),
                     number(put["p50_us"], 1), *floors_of(row)])
    wrong = sum(row[kind]["wrong_values"] for row in result["large"] for kind in ["get", "put"])
    return (f"**Large values** into and from registered memory, beside bare READs of as many bytes; GB/s, the best of "
            f"{result['large'][0]['runs']} runs each, in turns; values checked by sampled words: {wrong} wrong\n\n" +
            table(["value", "in flight", "bare READs", "GETs", "ratio", "PUTs", "ratio", "READs per GET",
                   "GET p50 us", "PUT p50 us", "ratio of two bare READs", "of SEND, READ, SEND"], rows))


def floors_of(row):
    """What bare verbs reach with the round trips of a GET and of a PUT, as ratios to bare READs."""
    if not row.get("floor"):
        return ["-", "-"]
    return [f"{row['floor'][kind]['share_of_read']:.2f}" for kind in ("confirmed", "fetched")]


def cpu_of(rows, name, workload, clients):
    row = next(row for row in rows
               if (row["setting"], row["workload"], row["clients"]) == (name, workload, clients))
    if "server_cpu_seconds_per_million" not in row:
        return "-"
    return (f"{row['client_cpu_seconds_per_million']:.1f} + "
            f"{row['server_cpu_seconds_per_million']:.1f}")


def durability(result):
    figures = result["durability"]
    rows = figures["puts"]
    names = list(dict.fromkeys(row["setting"] for row in rows))
    lines = []
    for workload, clients in dict.fromkeys((row["workload"], row["clients"]) for row in rows):
        of = {row["setting"]: row["ops_per_second"] for row in rows
              if (row["workload"], row["clients"]) == (workload, clients)}
        lines.append([f"{workload}, {clients}", *(f"{of[name]:,.0f}" for name in names),
                      f"{of['gannet, interval'] / of['gannet, no disk']:.2f} (aim: at least 0.7)",
                      f"{of['gannet, interval'] / of['redis, everysec']:.1f} (2)",
                      f"{of['gannet, always'] / of['redis, always']:.1f} (1)"])
    restore = figures["restore"]
    cpu = [[f"{workload}, {clients}", *(cpu_of(rows, name, workload, clients) for name in names)]
           for workload, clients in dict.fromkeys((row["workload"], row["clients"]) for row in rows)]
    return (f"**Operations a second with a disk**, values of 100 bytes, 32 in flight for each client, the best of "
            f"{figures['runs']} runs\n\n" +
            table(["workload, clients", *names, "interval / no disk", "interval / everysec",
                   "always / always"], lines) +
            "\n\n**CPU seconds of a million operations** in these runs, of the clients + of the server, without what the kernel "
            "does for the disk on its own threads\n\n" +
            table(["workload, clients", *names], cpu) +
            f"\n\n**Restore**: {restore['items']:,} items of 100 bytes in {restore['seconds']:.2f} s (an empty start takes "
            f"{restore['empty_seconds']:.2f} s), {restore['items_per_second']:,.0f} a second (aim: at least 1,000,000)"
            "\n\n" + gets_beside_snapshots(figures["gets"], restore["items"]))


def gets_beside_snapshots(rows, items):
    written = [seconds for row in rows for seconds in row["snapshot_seconds"]]
    lines = [["yes" if row["snapshots"] else "no", f"{row['ops_per_second']:,.0f}", f"{row['reads_per_get']:.3f}",
              f"{row['p50_us']:.1f}", f"{row['p99_us']:.1f}"] for row in rows]
    return (f"**GETs while snapshots are written** ({len(written)} of {items:,} items, one after the other, the longest in "
            f"{max(written):.1f} s), one client at depth 1, in turns\n\n" +
            table(["snapshots", "GETs a second", "READs a GET", "p50, us", "p99, us"], lines))


# The groups of measurements, the parts of tools/bench/bench that each group has, and its tables. Each
# group has its own markers in the page, so that it can be measured again without the others.
def tier(result):
    measured = result["tier"]
    rows = []
    for row in measured["rows"]:
        of_all = next(other["hit_ratio"] for other in measured["rows"]
                      if (other["value_bytes"], other["store"]) == (row["value_bytes"], "all in memory"))
        rows.append([f"{row['value_bytes']:,}", row["store"], f"{row['hit_ratio']:.2%}", number(row["hit_ratio"] / of_all, 3),
                     f"{row['gets_per_second']:,.0f}", number(row["p50_us"], 0), number(row["p99_us"], 0),
                     number(row["disk_reads_per_get"], 3), number(row["written"] / row["keys"], 2)])
    limited = all(row["limited"] for row in measured["rows"])
    return (f"**A disk behind the memory**: Zipf 0.99 over {measured['set_bytes'] / (1 << 30):g} GiB, {measured['memory_share']:.0%} "
            f"of that as memory, depth {measured['depth']}, a miss is followed by a PUT, second run; "
            f"{'each process in a cgroup of the same size' if limited else 'no cgroup: pages of files count for nobody'}\n\n" +
            table(["value, B", "store", "hits", "of all in memory", "GETs/s", "p50, µs", "p99, µs", "disk reads per GET",
                   "written per key"], rows))


GROUPS = {
    "the device": (["floor", "perftest", "instructions", "spans"], [device, instructions, spans]),
    "the stores": (["ycsb", "own_generators"], [ycsb, verbs]),
    "crowds": (["crowd"], [crowd]),
    "large values": (["large"], [large]),
    "READs": (["lookup", "growth"], [by_fill, popular, shared, growth]),
    "the footprint": (["footprint"], [footprint]),
    "eviction": (["memory"], [memory]),
    "filling the memory": (["many_items", "full_puts"], [many_items, full_puts]),
    "durability": (["durability"], [durability]),
    "a disk behind the memory": (["tier"], [tier]),
}


def groups(result):
    """Returns the texts of the groups that were measured, by name."""
    return {name: "\n\n".join(part(result) for part in [heading, *tables])
            for name, (parts, tables) in GROUPS.items() if parts[0] in result}


def tables(result):
    return "\n\n".join(groups(result).values())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    pages = sys.argv[2:]
    with open(sys.argv[1], encoding="utf-8") as file:
        result = json.load(file)
    if not pages:
        print(tables(result))
    elif has_markers(pages[0], SUMMARY):
        if "ycsb" in result:
            insert(pages[0], SUMMARY, side_by_side(result))
    else:
        for name, text in groups(result).items():
            measured = f"./dev bench, {name}"
            insert(next((page for page in pages if has_markers(page, measured)), pages[0]), measured, text)


if __name__ == "__main__":
    main()
