#!/usr/bin/env python3
"""Writes the bill of materials of a build as SPDX 2.3 JSON: bom.py BUILD [OUTPUT]

It lists the programs with their checksums, the libraries that they are linked with (from their ELF headers; on
Debian with package and version), the libraries that they load at run time where they are there (from their
names in the source), and the tools of the build. Nothing in it is written by hand, except what SPDX demands.
"""
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import project


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def first(pattern, text):
    match = re.search(pattern, text, re.M)
    return match.group(1) if match else None


def introspect(build, what):
    return json.loads(output("meson", "introspect", what, str(build)))


def needed(program):
    """Names of the libraries in the header of the program."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", str(program)))


def library_files(program):
    """Library name -> file, as the loader of this machine finds it."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", output("ldd", str(program)), re.M))


def debian_package(path):
    """(package, version) that a file belongs to, or None. Folders that are links hide packages: /lib is /usr/lib."""
    for name in {path, os.path.realpath(path), re.sub("^/usr", "", os.path.realpath(path))}:
        done = subprocess.run(["dpkg-query", "-S", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if done.returncode == 0:
            package = done.stdout.split(",")[0].split(": ")[0].strip()
            return package.split(":")[0], output("dpkg-query", "-W", "-f", "${Version}", package)
    return None


def distribution():
    return first(r"^ID=(.*)$", pathlib.Path("/etc/os-release").read_text(encoding="utf-8"))


class Bill:
    def __init__(self, name, version, created, about):
        self.packages, self.relations = [], []
        self.document = {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"{name}-{version}",
            "documentNamespace": f"https://{name}.invalid/spdx/{version}",
            "creationInfo": {"created": created, "creators": [f"Tool: {name}-bom-{version}"]},
            "packages": self.packages, "relationships": self.relations}
        self.relate("SPDXRef-DOCUMENT", "DESCRIBES", self.add(
            name, version, licenseDeclared=about["licence"], copyrightText=f"Copyright (c) {about['copyright']}"))

    def add(self, name, version, **more):
        identity = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
        if not any(package["SPDXID"] == identity for package in self.packages):
            self.packages.append({"SPDXID": identity, "name": name,
                                  **({"versionInfo": version} if version else {}), "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
                                  "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
                                  "copyrightText": "NOASSERTION", **more})
        return identity

    def relate(self, one, how, other):
        row = {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}
        if row not in self.relations:
            self.relations.append(row)


def add_program(bill, main, path, version):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    program = bill.add(path.name, version, primaryPackagePurpose="APPLICATION",
                       checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
    bill.relate(main, "CONTAINS", program)
    if path.read_bytes().startswith(b"#!"):  # a script is linked with nothing
        return
    files = library_files(path)
    for library in needed(path):
        found = debian_package(files[library]) if library in files else None
        more = {"primaryPackagePurpose": "LIBRARY"}
        if found:
            more["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                     "referenceLocator": f"pkg:deb/{distribution()}/{found[0]}@{found[1]}"}]
        bill.relate(program, "DYNAMIC_LINK", bill.add(library, found[1] if found else None, **more))


def loaded_libraries(root):
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((root / "src").rglob("*.c")))
    return sorted(set(re.findall(r'"(lib[\w-]+\.so\.\d+)"', text)))


def tools(build):
    """(name, version) of what the build was made with."""
    sources = [source for target in introspect(build, "--targets") for source in target["target_sources"]]
    compiler = next(source["compiler"] for source in sources if source.get("language") == "c")
    yield pathlib.Path(compiler[0]).name, first(r"^(.*)$", output(*compiler, "--version"))
    yield "meson", output("meson", "--version").strip()
    for command in sorted(set(re.findall(r"(\S*nvcc) -fatbin ", pathlib.Path(build, "build.ninja").read_text()))):
        yield "nvcc", first(r"release ([\d.]+)", output(command, "--version"))


def make(build):
    version = introspect(build, "--projectinfo")["version"]
    root = pathlib.Path(json.loads(pathlib.Path(build, "meson-info/meson-info.json").read_text())["directories"]["source"])
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.datetime.fromtimestamp(int(epoch) if epoch else int(datetime.datetime.now().timestamp()),
                                           datetime.timezone.utc)
    bill = Bill("gpumemtopo", version, when.strftime("%Y-%m-%dT%H:%M:%SZ"), project.read(root))
    main = "SPDXRef-gpumemtopo"
    installed = introspect(build, "--installed")
    programs = sorted(path for path, to in installed.items() if "/bin/" in to or to.endswith(".so"))
    for path in programs:
        add_program(bill, main, pathlib.Path(path), version)
    for library in loaded_libraries(root):
        why = "under its launcher" if "mpi" in library else "to measure real GPUs"
        bill.relate(bill.add(library, None, primaryPackagePurpose="LIBRARY",
                             comment=f"loaded at run time, only {why}"), "OPTIONAL_DEPENDENCY_OF", main)
    for name, tool_version in tools(build):
        bill.relate(bill.add(name, tool_version), "BUILD_TOOL_OF", main)
    return bill.document


if __name__ == "__main__":
    text = json.dumps(make(sys.argv[1]), indent=1) + "\n"
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).write_text(text, encoding="utf-8")
    else:
        print(text, end="")
