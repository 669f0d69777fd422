#!/usr/bin/env python3
"""Checks that C and Python have every public method of the C++ clients, and asyncio's client those of the blocking one:
has_all_methods.py SOURCE_DIR."""

import re
import sys

# Methods with another name in C: what follows gannet_client_ or gannet_async_.
OTHER_NAMES = {
    "Client": {"GetView": "get", "AllocateMemory": "allocate", "AcquireLock": "lock", "PingEach": "ping",
               "Info": "server_info", "PutFrom": "put_from_memory", "MultiGetInto": "multi_get_into_memory",
               "MultiPutFrom": "multi_put_from_memory"},
    # Add and Replace are a put with a condition.
    "AsyncClient": {"AllocateMemory": "allocate", "Info": "server_info", "Add": "put", "Replace": "put",
                    "GetInto": "get_into_memory", "PutFrom": "put_from_memory"},
}
# Functions that Python does without: puts with a condition, incr of less than 0, and memory that has no address of the CPU.
OF_C_ALONE = {"add", "replace", "decr", "register_dmabuf"}
# Methods of gannet.Client that make no sense in the one of asyncio. The other way round there are more.
NOT_IN_AIO = {"_get_whole", "_change", "_fail", "_item", "_was_there", "_each_was_there", "__enter__", "__exit__"}


def methods(header, name):
    """Names of a class's public methods, as they are declared."""
    body = re.search(rf"^class {name} .*?\{{\n public:\n(.*?)^ private:", header, re.DOTALL | re.MULTILINE).group(1)
    body = re.sub(r"//.*", "", body)
    declared = re.findall(r"\b([A-Z]\w*)\((?=[^;]*\)[^;()]*;|[^;{]*\{)", re.sub(r"\{[^{}]*\}", "{}", body))
    return {m for m in declared if m != name}


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def main():
    source = sys.argv[1]
    read = lambda path: open(f"{source}/{path}", encoding="utf-8").read()
    c = "".join(read(f"client/include/gannet/c/{name}.h") for name in ("client", "observed", "async"))
    python = "".join(read(f"python/gannet/{name}.py") for name in ("client", "memory", "servers"))
    missing = []
    for name, header, prefix in [("Client", "client", "gannet_client_"), ("AsyncClient", "async_client", "gannet_async_")]:
        found = methods(read(f"client/include/gannet/{header}.h"), name)
        assert len(found) > 15, found
        for method in sorted(found):
            function = OTHER_NAMES[name].get(method, snake(method))
            if f"{prefix}{function}(" not in c:
                missing.append(f"{name}::{method} is not in C: {prefix}{function}")
    for function in re.findall(r"\bgannet_client_(\w+)\(", c):
        if function not in OF_C_ALONE and not re.search(rf"lib\.gannet_client_{function}\b", python):
            missing.append(f"gannet_client_{function} is not in Python")
    aio = set(re.findall(r"^    (?:async )?def (\w+)", read("python/gannet/aio.py").partition("\nclass Client:")[2], re.MULTILINE))
    for method in re.findall(r"^    def (\w+)", read("python/gannet/client.py").partition("\nclass Client:")[2], re.MULTILINE):
        if method not in aio | NOT_IN_AIO:
            missing.append(f"gannet.Client.{method} is not in gannet.aio.Client")
    sys.exit("\n".join(missing) or 0)


main()
