"""What is inside of a release, as an SPDX document: https://spdx.github.io/spdx-spec/v2.3/

Its elements are the files of the release, Debian's packages that the wheel and the image bring along, and Debian's packages
that the build needs. The names of licenses are those that Debian's copyright files use. They are no SPDX expressions,
so they are comments, and say where the text is.
"""

import email
import glob
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
import urllib.parse
import zipfile

DOCUMENT = "SPDXRef-DOCUMENT"
OURS = "Apache-2.0"


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def identifier(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(words))


def license_names(copyright_text):
    """Those in a copyright file that machines can read. Of another one nobody knows without reading it."""
    if not copyright_text.startswith("Format:"):
        return []
    return sorted(set(re.findall(r"^License:[ \t]*(\S.*?)\s*$", copyright_text, re.MULTILINE)))


class Debian:
    """A package of Debian: its name, version and copyright file."""

    def __init__(self, name, version, copyright_text, where):
        self.name = name
        self.version = version
        self.identifier = identifier("debian", name, version)
        self.licenses = license_names(copyright_text)
        self.where = where

    def element(self):
        named = ", ".join(self.licenses) or "no names that a machine can read"
        locator = f"pkg:deb/debian/{self.name}@{urllib.parse.quote(self.version, safe='')}"
        return {"SPDXID": self.identifier, "name": self.name, "versionInfo": self.version, "supplier": "Organization: Debian",
                "licenseComments": f"Debian's copyright file has: {named}. Its text is in {self.where}",
                "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}],
                **unknown()}


def unknown():
    return {"downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION"}


# --- what is in the files -------------------------------------------------------------------------


def in_wheel(path):
    """Debian's packages of the libraries that auditwheel added."""
    with zipfile.ZipFile(path) as wheel:
        [sbom] = [name for name in wheel.namelist() if name.endswith(".dist-info/sboms/auditwheel.cdx.json")]
        licenses = sbom.replace("sboms/auditwheel.cdx.json", "licenses")
        for component in json.loads(wheel.read(sbom))["components"]:
            if component.get("purl", "").startswith("pkg:deb/"):
                where = f"{licenses}/{component['name']}.copyright"
                yield Debian(component["name"], component["version"], wheel.read(where).decode(), f"the wheel, {where}")


class Image:
    """The files of an OCI image."""

    def __init__(self, path):
        with tarfile.open(path) as layout:
            def blob(descriptor):
                return layout.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()

            index = json.load(layout.extractfile("index.json"))
            [layer] = json.loads(blob(index["manifests"][0]))["layers"]  # one, as it was squashed
            self.tar = tarfile.open(fileobj=io.BytesIO(blob(layer)))
        self.members = {member.name.strip("./"): member for member in self.tar.getmembers()}

    def read(self, path):
        return self.tar.extractfile(self.members[path]).read().decode()

    def copyright_of(self, package):
        """Packages of one source share a folder, by a link."""
        folder = f"usr/share/doc/{package}"
        member = self.members.get(folder)
        if member and member.issym():
            folder = os.path.normpath(f"usr/share/doc/{member.linkname}")
        return f"{folder}/copyright"


def in_image(path):
    """All packages, as scanners find them: in var/lib/dpkg/status.d."""
    image = Image(path)
    for name in sorted(image.members):
        if name.startswith("var/lib/dpkg/status.d/"):
            fields = email.message_from_string(image.read(name))
            where = image.copyright_of(fields["Package"])
            yield Debian(fields["Package"], fields["Version"], image.read(where), f"the image, /{where}")


def of_build(packages):
    """Packages that are installed here."""
    for name in packages:
        version = subprocess.run(("dpkg-query", "-W", "-f=${Version}", name), stdout=subprocess.PIPE, text=True, check=True).stdout
        with open(f"/usr/share/doc/{name}/copyright", encoding="utf-8") as file:
            yield Debian(name, version, file.read(), f"the package, /usr/share/doc/{name}/copyright")


# --- the document ---------------------------------------------------------------------------------


def of_file(path, version):
    """The element of a file of the release."""
    name = os.path.basename(path)
    return {"SPDXID": identifier("file", name), "name": name.partition("_")[0] if name.endswith(".deb") else "gannet",
            "versionInfo": version, "packageFileName": name, "supplier": "Organization: The Gannet authors",
            "checksums": [{"algorithm": "SHA256", "checksumValue": sha256(path)}], **unknown(),
            "licenseDeclared": OURS, "copyrightText": "2026 The Gannet authors"}


def relation(subject, kind, other):
    return {"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": other}


def document(folder, version, commit, when, built_with):
    files = {os.path.basename(path): of_file(path, version) for path in sorted(glob.glob(f"{folder}/*"))}
    source = files[f"gannet-{version}.tar.gz"]
    source["sourceInfo"] = f"git commit {commit}"
    elements = {it["SPDXID"]: it for it in files.values()}
    relations = [relation(DOCUMENT, "DESCRIBES", it["SPDXID"]) for it in files.values()]
    relations += [relation(it["SPDXID"], "GENERATED_FROM", source["SPDXID"]) for it in files.values() if it is not source]
    ours = {it["name"]: it for name, it in files.items() if name.endswith(".deb")}

    def add(package, way):
        """`way` makes the relation from the package's identifier."""
        it = ours.get(package.name) or package.element()
        elements.setdefault(it["SPDXID"], it)
        relations.append(way(it["SPDXID"]))

    for ending, read in ((".whl", in_wheel), (".oci.tar", in_image)):
        [name] = [name for name in files if name.endswith(ending)]
        for package in read(f"{folder}/{name}"):
            add(package, lambda it, name=name: relation(files[name]["SPDXID"], "CONTAINS", it))
    for package in of_build(built_with):
        add(package, lambda it: relation(it, "BUILD_DEPENDENCY_OF", source["SPDXID"]))
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": DOCUMENT, "name": f"gannet-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/gannet-{version}-{commit}",
            "creationInfo": {"created": f"{when:%Y-%m-%dT%H:%M:%SZ}", "creators": ["Tool: packaging/release of Gannet"]},
            "packages": list(elements.values()), "relationships": relations}


def write(path, *arguments):
    made = document(*arguments)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(made, file, indent=1)
        file.write("\n")


def checksums(path):
    """The checksum of each file of the release that the document has."""
    with open(path, encoding="utf-8") as file:
        packages = json.load(file)["packages"]
    return {it["packageFileName"]: it["checksums"][0]["checksumValue"] for it in packages if "packageFileName" in it}
