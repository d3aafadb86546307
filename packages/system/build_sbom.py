#!/usr/bin/env python3
"""Says what a program or library of ours is made of, as a CycloneDX 1.5 file; prints its path.

    packages/system/build_sbom.py DIRECTORY CRATE...      such as waldio joj

Which crates are linked says `cargo tree` (not those that only tests, build scripts and macros use); their licences `cargo metadata`,
their checksums Cargo.lock. Two runs give the same bytes: it holds no time.
"""

import json
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: C sources that a crate brings along, by the crate: name, where its version stands, licence.
BUNDLED = {"libsqlite3-sys": ("sqlite", "sqlite3/sqlite3.h", r'#define SQLITE_VERSION\s+"([^"]+)"', "blessing")}


PLATFORM = "x86_64-unknown-linux-gnu"


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def metadata():
    return json.loads(cargo("metadata", "--locked", "--format-version=1", f"--filter-platform={PLATFORM}"))


def checksums():
    """SHA-256 of each crate's archive, by name and version, as Cargo.lock has it."""
    entries = (ROOT / "Cargo.lock").read_text(encoding="utf-8").split("[[package]]")[1:]
    fields = [dict(re.findall(r'^(\w+) = "(.*)"$', entry, re.MULTILINE)) for entry in entries]
    return {(entry["name"], entry["version"]): entry["checksum"] for entry in fields if "checksum" in entry}


def linked(found, crate):
    """Ids of the packages that end in this crate, each with those that it needs. `cargo metadata` alone has those of all its features."""
    tree = cargo("tree", "--locked", "--package", crate, "--edges=normal,no-proc-macro", "--prefix=none", f"--target={PLATFORM}")
    names = {tuple(line.split()[:2]) for line in tree.splitlines()}
    within = {package["id"] for package in found["packages"] if (package["name"], f"v{package['version']}") in names}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    return {identity: sorted(within.intersection(nodes[identity]["dependencies"])) for identity in within}


def component(package, sums):
    reference = f"pkg:cargo/{package['name']}@{package['version']}"
    entry = {"type": "library", "bom-ref": reference, "name": package["name"], "version": package["version"], "purl": reference}
    if package.get("license"):
        # Cargo's older way to say it: MIT/Apache-2.0.
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = sums.get((package["name"], package["version"]))
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return entry


def bundled(package):
    """The C source inside a crate, or nothing."""
    if package["name"] not in BUNDLED:
        return []
    name, file, pattern, licence = BUNDLED[package["name"]]
    text = pathlib.Path(package["manifest_path"]).with_name(file.split("/")[0]).joinpath(file.split("/")[1]).read_text(encoding="utf-8")
    version = re.search(pattern, text).group(1)
    reference = f"pkg:generic/{name}@{version}"
    licences = [{"license": {"id": licence}}]
    return [{"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference, "licenses": licences}]


def bill(found, crate, sums):
    packages = {package["id"]: package for package in found["packages"]}
    members = set(found["workspace_members"])
    root = next(identity for identity in members if packages[identity]["name"] == crate)
    needs = linked(found, crate)
    reference = {identity: component(packages[identity], sums)["bom-ref"] for identity in needs}
    components, dependencies = [], []
    for identity in sorted(needs, key=lambda identity: reference[identity]):
        inside = bundled(packages[identity])
        if identity != root:
            components.append(component(packages[identity], sums))
        components += inside
        below = [reference[edge] for edge in needs[identity]] + [entry["bom-ref"] for entry in inside]
        dependencies.append({"ref": reference[identity], "dependsOn": sorted(below)})
    head = component(packages[root], sums) | {"type": "library" if crate == "waldio" else "application"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components))}",
        "version": 1,
        "metadata": {"component": head},
        "components": components,
        "dependencies": dependencies,
    }


def build(directory, crates):
    found, sums = metadata(), checksums()
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for crate in crates:
        made = bill(found, crate, sums)
        path = directory / f"{crate}-{made['metadata']['component']['version']}.cdx.json"
        path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for path in build(pathlib.Path(sys.argv[1]), sys.argv[2:]):
        print(path)
