"""The bill of materials lists what the programs are linked with and what they load, in the form of SPDX 2.3:
bom.py SOURCE_ROOT BUILD PROGRAM..."""
import json
import pathlib
import re
import sys

import made

root, build, programs = sys.argv[1], sys.argv[2], sys.argv[3:]
made.skip_without("readelf", "ldd")
bill = json.loads(made.run(sys.executable, f"{root}/tools/bom.py", build))
packages = {package["SPDXID"]: package for package in bill["packages"]}
names = {package["name"]: package for package in bill["packages"]}
relations = {(row["spdxElementId"], row["relationshipType"], row["relatedSpdxElement"]) for row in bill["relationships"]}

# What SPDX 2.3 demands of a document, of a package and of names.
for key in ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages", "relationships"):
    assert key in bill, key
assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0" and bill["SPDXID"] == "SPDXRef-DOCUMENT"
assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", bill["creationInfo"]["created"])
assert all(re.fullmatch(r"(Person|Organization|Tool): \S.*", who) for who in bill["creationInfo"]["creators"])
for identity, package in packages.items():
    assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", identity), identity
    assert package["name"] and package["downloadLocation"] == "NOASSERTION" and package["filesAnalyzed"] is False
assert len(packages) == len(bill["packages"]) == len(names)
known = set(packages) | {"SPDXRef-DOCUMENT"}
assert all(one in known and other in known for one, _, other in relations), relations
assert ("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-gpumemtopo") in relations
assert f"SPDX-License-Identifier: {names['gpumemtopo']['licenseDeclared']}\n" in pathlib.Path(root, "LICENSE").read_text(encoding="utf-8")

assert ("SPDXRef-gpumemtopo", "CONTAINS", "SPDXRef-gpumemtopo-kit") in relations  # a script
# Every library that the loader would load for a program directly; each program is in it.
for program in programs:
    name = pathlib.Path(program).name
    libraries = re.findall(r"NEEDED +(\S+)", made.run("objdump", "-p", program))
    assert libraries and ("SPDXRef-gpumemtopo", "CONTAINS", f"SPDXRef-{name}") in relations, name
    linked = {packages[other]["name"] for one, how, other in relations
              if one == f"SPDXRef-{name}" and how == "DYNAMIC_LINK"}
    assert linked == set(libraries), (linked, libraries)
    digest = made.run("sha256sum", program).split()[0]
    assert names[name]["checksums"] == [{"algorithm": "SHA256", "checksumValue": digest}]
optional = {packages[one]["name"] for one, how, _ in relations if how == "OPTIONAL_DEPENDENCY_OF"}
assert optional == {"libcuda.so.1", "libnvidia-ml.so.1", "libmpi.so.40", "libmpich.so.12", "libmpi.so.12"}, optional
assert "gpumemtopo-mpi-openmpi.so" in names or "openmpi" not in made.run("meson", "introspect", "--targets", build)
with_cuda = "CUDA backend: yes" in made.run(next(path for path in programs if path.endswith("survey")), "--version")
built_by = {packages[one]["name"] for one, how, _ in relations if how == "BUILD_TOOL_OF"}
assert "meson" in built_by and ("nvcc" in built_by) == with_cuda, built_by
