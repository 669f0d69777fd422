"""Makes Markdown tables of results, and inserts them into a page."""


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def number(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def markers(by):
    return f"<!-- measured by {by}: begin -->", f"<!-- measured by {by}: end -->"


def has_markers(path, by):
    with open(path, encoding="utf-8") as file:
        return markers(by)[0] in file.read()


def insert(path, by, text):
    """Replaces the text between a program's markers in a page."""
    begin, end = markers(by)
    with open(path, encoding="utf-8") as file:
        before, found_begin, rest = file.read().partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"the page has no '{begin}' ... '{end}'")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{begin}\n{text}\n{end}{after}")


# --- the tables of `scale`; a time is '-' if `scale` did not measure it

def memory(count):
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def items(results):
    header = ["items", "region", "READs per GET", "bytes", "posts, 32 in flight",
              "client instructions, cold", "location known", "ns, one at a time",
              "ns, 32 in flight", "ns, memcpy"]
    return table(header, [
        [number(r["items"]), memory(r["memory_bytes"]), number(r["reads_per_get"], 4),
         number(r["read_bytes_per_get"], 1), number(r["posts_per_get"], 3),
         number(r.get("get_instructions_cold")), number(r.get("get_instructions_warm")),
         number(r.get("get_ns_depth_1")), number(r.get("get_ns_depth_32")),
         number(r.get("copies_ns"))] for r in results])


def sessions(results):
    header = ["sessions", "server bytes a session", "READs per GET", "bytes",
              "server instructions per PUT", "posts for replies per PUT, one in flight each",
              "for receives", "send completions"]
    return table(header, [
        [number(r["sessions"]), number(r["session_bytes"]), number(r["get"]["reads"], 3),
         number(r["get"]["read_bytes"], 1), number(r.get("put_instructions")),
         number(r["server"]["reply_posts"], 3), number(r["server"]["receive_posts"], 3),
         number(r["server"]["send_completions"], 3)] for r in results])


SCALE = {"items": items, "sessions": sessions}
