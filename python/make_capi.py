#!/usr/bin/env python3
"""Writes the C source of the module gannet._capi: make_capi.py INCLUDE_DIR OUTPUT.

cffi makes it of the declarations in gannet's C headers, so the headers are the only list of them.
"""

import re
import sys

import cffi

HEADERS = ("types", "client", "observed", "async")


def declarations(text):
    """Returns a header without its preprocessor lines, which cffi does not read."""
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.DOTALL)
    return re.sub(r"^#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)


def main():
    include, output = sys.argv[1:]
    ffi = cffi.FFI()
    for name in HEADERS:
        with open(f"{include}/gannet/c/{name}.h", encoding="utf-8") as file:
            ffi.cdef(declarations(file.read()))
    # What gannet_walk calls, written in Python (gannet/walk.py).
    ffi.cdef('extern "Python" int gannet_show_walked_item(void *, const gannet_walked_item *);')
    ffi.set_source("gannet._capi", "#include <gannet/gannet.h>\n")
    ffi.emit_c_code(output)


main()
