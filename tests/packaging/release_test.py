#!/usr/bin/env python3
"""What `./dev release` refuses, and what it says of what is inside: packaging/release, with a small tree and small files.

    release_test.py --source DIR

That it makes what it should is tested by itself: it tests all that it makes.
"""

import argparse
import contextlib
import datetime
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

sys.dont_write_bytecode = True
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CMAKE = "project(gannet VERSION {} LANGUAGES C CXX)\n"
CHANGES = "# Changes\n\n## {} (2026-11-22)\n\n- {}\n"
COPYRIGHT = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\nLicense: {}\n The text.\n"


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def load_make(source):
    loader = importlib.machinery.SourceFileLoader("make", f"{source}/packaging/release/make")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("make", loader))
    loader.exec_module(module)
    return module


def write(path, content):
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


# --- what is refused ------------------------------------------------------------------------------


class Tree:
    """A repository with no more than what is looked at."""

    def __init__(self, path, source):
        self.path = path
        shutil.copytree(f"{source}/packaging/release", f"{path}/packaging/release")
        shutil.copy(f"{source}/dev", path)
        self.git("init", "-q")
        self.version("0.1.0", "0.1.0")

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", *words], cwd=self.path, check=True)

    def version(self, version, heading, changed="All of it."):
        write(f"{self.path}/CMakeLists.txt", CMAKE.format(version))
        write(f"{self.path}/CHANGELOG.md", CHANGES.format(heading, changed) if changed else CHANGES.format(heading, "")[:-3])
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "A change", "--allow-empty")

    def expect(self, wanted):
        """`wanted` is said, or, if it is None, nothing."""
        done = subprocess.run([f"{self.path}/packaging/release/make", "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        if wanted is None:
            check(done.returncode == 0, done.stdout)
        else:
            check(done.returncode == 1 and wanted in done.stdout, f"not {wanted!r}, but {done.returncode} {done.stdout}")


def check_refusals(path, source):
    tree = Tree(path, source)
    tree.expect(None)
    tree.git("tag", "v0.1.0")
    tree.expect(None)
    write(f"{path}/new.cc", "")
    tree.expect("?? new.cc")
    done = subprocess.run([f"{path}/dev", "release"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(done.returncode == 1 and "in no commit" in done.stdout, f"./dev release: {done.returncode} {done.stdout}")
    check(not os.path.exists(f"{path}/build"), "./dev release has begun, though the tree has changes")
    os.remove(f"{path}/new.cc")
    write(f"{path}/CHANGELOG.md", CHANGES.format("0.1.0", "More."))
    tree.expect("M CHANGELOG.md")
    tree.version("0.2.0", "0.1.0")
    tree.expect('Write an entry "## 0.2.0 (DATE)"')
    tree.version("0.2.0", "0.2.0", changed="")
    tree.expect("does not say what 0.2.0 changes")
    tree.version("0.2.0", "0.2.0")
    tree.expect(None)
    tree.git("tag", "v0.3.0")
    tree.expect("has the tag v0.3.0, and CMakeLists.txt has version 0.2.0")
    shutil.rmtree(f"{path}/.git")
    tree.expect("a release is made of a commit")


# --- what is inside -------------------------------------------------------------------------------


def tar_of(files, links=()):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
        for name, target in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return made.getvalue()


def status_of(package, version):
    return f"Package: {package}\nVersion: {version}\nDescription: short\n long\n".encode()


def image_of(contents_of_layer, links):
    """An OCI image of one layer."""
    layer = tar_of(contents_of_layer, links)
    manifest = json.dumps({"layers": [{"digest": "sha256:layer"}]}).encode()
    index = json.dumps({"manifests": [{"digest": "sha256:manifest"}]}).encode()
    return tar_of({"index.json": index, "blobs/sha256/manifest": manifest, "blobs/sha256/layer": layer})


def wheel_of():
    made = io.BytesIO()
    components = [{"name": "gannet"}, {"name": "libx1", "version": "1:2+3", "purl": "pkg:deb/debian/libx1@1:2+3"}]
    with zipfile.ZipFile(made, "w") as wheel:
        wheel.writestr("gannet-0.1.0.dist-info/sboms/auditwheel.cdx.json", json.dumps({"components": components}))
        wheel.writestr("gannet-0.1.0.dist-info/licenses/libx1.copyright", COPYRIGHT.format("BSD-3-clause"))
    return made.getvalue()


def make_files(dist):
    files = {"usr/share/doc/gcc-12-base/copyright": b"Prose.", "usr/share/doc/libc6/copyright": COPYRIGHT.format("LGPL-2.1+").encode(),
             "usr/share/doc/gannet-server/copyright": COPYRIGHT.format("Apache-2.0").encode()}
    for package, version in (("libc6", "2.36"), ("libgcc-s1", "12"), ("gannet-server", "0.1.0-1")):
        files[f"var/lib/dpkg/status.d/{package}"] = status_of(package, version)
    write(f"{dist}/gannet-0.1.0.oci.tar", image_of(files, [("usr/share/doc/libgcc-s1", "gcc-12-base")]))
    write(f"{dist}/gannet-0.1.0-cp39.whl", wheel_of())
    write(f"{dist}/gannet-server_0.1.0-1_amd64.deb", "deb")
    write(f"{dist}/gannet-0.1.0.tar.gz", "sources")


def check_contents(dist, make):
    made = make.contents.document(dist, "0.1.0", COMMIT, datetime.datetime(2026, 11, 22), ["base-files"])
    elements = {it["SPDXID"]: it for it in made["packages"]}
    check(len(elements) == len(made["packages"]), "two elements have one name")

    def related(kind, subject):
        return {elements[it["relatedSpdxElement"]]["name"] for it in made["relationships"]
                if it["relationshipType"] == kind and it["spdxElementId"] == subject}

    described = related("DESCRIBES", "SPDXRef-DOCUMENT")
    check(described == {"gannet", "gannet-server"}, f"described: {described}")
    check(related("CONTAINS", "SPDXRef-file-gannet-0.1.0.oci.tar") == {"libc6", "libgcc-s1", "gannet-server"}, made["relationships"])
    check(related("CONTAINS", "SPDXRef-file-gannet-0.1.0-cp39.whl") == {"libx1"}, made["relationships"])
    check(related("BUILD_DEPENDENCY_OF", next(it for it in elements if "base-files" in it)) == {"gannet"}, made["relationships"])
    check(COMMIT in elements["SPDXRef-file-gannet-0.1.0.tar.gz"]["sourceInfo"], "the commit")
    for identifier, wanted in (("SPDXRef-debian-libc6-2.36", "has: LGPL-2.1+."), ("SPDXRef-debian-libx1-1-2-3", "has: BSD-3-clause."),
                               ("SPDXRef-debian-libgcc-s1-12", "the image, /usr/share/doc/gcc-12-base/copyright")):
        check(wanted in elements[identifier]["licenseComments"], elements[identifier])
    locator = elements["SPDXRef-debian-libx1-1-2-3"]["externalRefs"][0]["referenceLocator"]
    check(locator == "pkg:deb/debian/libx1@1%3A2%2B3", locator)


def refuses(verify, *arguments):
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            verify(*arguments)
        except SystemExit:
            return True
    return False


def check_checksums(dist, make):
    make.contents.write(f"{dist}/gannet-0.1.0.spdx.json", dist, "0.1.0", COMMIT, datetime.datetime(2026, 11, 22), [])
    make.write_checksums(dist)
    check(not refuses(make.check_files, dist, "0.1.0"), "what was made is refused")
    write(f"{dist}/more", "")
    check(refuses(make.check_files, dist, "0.1.0"), "a file without a checksum is taken")
    make.write_checksums(dist)
    check(refuses(make.check_files, dist, "0.1.0"), "a file that the list does not have is taken")
    os.remove(f"{dist}/more")
    make.write_checksums(dist)
    write(f"{dist}/gannet-0.1.0.tar.gz", "other sources")
    check(refuses(make.check_files, dist, "0.1.0"), "a file with another checksum is taken")
    make.write_checksums(dist)
    check(refuses(make.check_files, dist, "0.1.0"), "a file of which the list has another checksum is taken")


def check_skips(make):
    check(refuses(make.run, "sh", "-c", "exit 77"), "a test that was skipped counts as passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--source", required=True)
    source = parser.parse_args().source
    make = load_make(source)
    with tempfile.TemporaryDirectory(prefix="gannet-release-") as path:
        os.mkdir(f"{path}/tree")
        check_refusals(f"{path}/tree", source)
        os.mkdir(f"{path}/dist")
        make_files(f"{path}/dist")
        check_contents(f"{path}/dist", make)
        check_checksums(f"{path}/dist", make)
    check_skips(make)
    print("refused what should be, and listed what is inside")


if __name__ == "__main__":
    main()
