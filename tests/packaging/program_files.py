"""Compares what is installed beside the programs with what the programs say of themselves."""

import gzip
import re
import subprocess
import tempfile

PROGRAMS = ("kvserver", "kvcli", "kvload")
# (program, words of the line, what is offered for the last)
COMPLETIONS = (
    ("kvserver", ["--mem"], ["--memory=", "--memory_file="]),
    ("kvserver", ["--device", "=", "so"], ["soft"]),
    ("kvserver", ["--memory", "=", "1"], []),
    ("kvserver", ["--he"], ["--help"]),
    ("kvload", ["--backend", "="], ["gannet", "redis", "memcached"]),
    ("kvload", ["--nover"], ["--noverify"]),
    ("kvcli", ["pu"], ["put"]),
    ("kvcli", ["--js"], ["--json"]),
    ("kvcli", ["--json", "get", "key", "--me"], ["--meta"]),
    ("kvcli", ["--server", "=", "get"], []),
    ("kvcli", ["stats", "--js"], ["--json"]),
    ("kvcli", ["cluster", "re"], ["remove", "remove-group"]),
    ("kvcli", ["cluster", "status", "re"], []),
    ("kvcli", ["cluster", "force", "--lose"], ["--lose-data"]),
    ("kvcli", ["put", "key", "--file", "=", "/etc/hostn"], ["/etc/hostname"]),
)


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def page(prefix, name):
    """The man page's source, without what troff takes for itself."""
    with gzip.open(f"{prefix}/share/man/man{name[-1]}/{name}.gz", "rt", encoding="utf-8") as file:
        text = file.read()
    return re.sub(r"\\f[BIR]", "", text.replace("\\-", "-").replace("\\_", "_")).replace("\\&", "")


def flags_in(text):
    """Names of the flags that a text mentions; a switch may be spelled --name, --noname, --[no]name."""
    return set(re.findall(r"(?<![\w-])--(?:\[no\])?([a-z][a-z_]+)", text))


def check_page(prefix, program):
    help_text = said(f"{prefix}/bin/{program}", "--help")
    text = page(prefix, f"{program}.1")
    for missing in sorted(flags_in(help_text) - flags_in(text)):
        yield f"{program}.1 lacks --{missing}"
    known = flags_in(help_text)
    for command in re.findall(r"^  ([a-z]+(?:-[a-z]+)*) ", help_text, re.MULTILINE) if program == "kvcli" else ():
        of_command = said(f"{prefix}/bin/kvcli", "help", command)
        known |= flags_in(of_command)
        if of_command.splitlines()[0] not in text:
            yield f"kvcli.1 lacks the command {command}"
    for unknown in sorted(flags_in(text) - known):
        yield f"{program}.1 has --{unknown}, which {program} has not"


def check_library_page(prefix):
    """Names that gannet(3) has are those of the headers."""
    headers = "".join(open(f"{prefix}/include/gannet/{name}.h", encoding="utf-8").read()
                      for name in ("client", "async_client", "types", "walker"))
    text = page(prefix, "gannet.3")
    classes = text.partition("CLASSES")[2].partition("ERRORS")[0]
    for sentence in re.findall(r"^(?:Synchronous calls\.|Of a connection:)(.*?)\.(?:\s|$)", classes,
                               re.MULTILINE | re.DOTALL) + [" ".join(re.findall(r"^([A-Z]\w+)$", classes, re.MULTILINE))]:
        for name in re.findall(r"\b(?!and\b)[A-Za-z_]{3,}\b", sentence):
            if not re.search(rf"\b{name}\b", headers):
                yield f"gannet.3 has {name}, which is in no header"


def check_softverbs_page(prefix):
    text = page(prefix, "softverbs-run.1")
    with open(f"{prefix}/lib/gannet/libsoftverbs.so", "rb") as file:
        library = file.read()
    for name in sorted(set(re.findall(r"SOFTVERBS_[A-Z_]+", text))):
        if name.encode() not in library:
            yield f"softverbs-run.1 has {name}, which softverbs does not know"
    for flag in flags_in(said(f"{prefix}/bin/softverbs-run", "--help")) - flags_in(text):
        yield f"softverbs-run.1 lacks --{flag}"


def check_configuration(prefix, text):
    """Each flag of a server that serves has one line, and the server takes every line as it stands."""
    lines = re.findall(r"^#?--([a-z_]+)=(.*)$", text, re.MULTILINE)
    names = sorted(name for name, _ in lines)
    flags = sorted(flags_in(re.sub(r"^ {8}.*|^[A-Z].*", "", said(f"{prefix}/bin/kvserver", "--help"), flags=re.MULTILINE))
                   - {"check", "flagfile", "help", "json", "version"})
    if names != flags:
        yield f"kvserver.conf has lines for {names}, kvserver has {flags}"
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.writelines(f"--{name}={value}\n" for name, value in lines)
        file.flush()
        done = subprocess.run([f"{prefix}/bin/kvserver", f"--flagfile={file.name}", "--version"], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            yield f"kvserver does not take kvserver.conf: {done.stderr}"


def check_completions(prefix):
    for program, words, wanted in COMPLETIONS:
        script = f"""source {prefix}/share/bash-completion/completions/{program}
            COMP_WORDS=({program} {' '.join(words)}) COMP_CWORD={len(words)}
            _gannet_{program}; echo "${{COMPREPLY[*]}}" """
        offered = said("bash", "-c", script).split()
        if offered != wanted:
            yield f"{program} {' '.join(words)}: {offered} are offered, and not {wanted}"


def problems(prefix, configuration):
    for program in PROGRAMS:
        yield from check_page(prefix, program)
    yield from check_library_page(prefix)
    yield from check_softverbs_page(prefix)
    yield from check_configuration(prefix, configuration)
    yield from check_completions(prefix)
