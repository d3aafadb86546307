#!/usr/bin/env python3
"""Records whose completion is polled for beside records whose completion is an interrupt, on block devices of Debian's kernel that can do both.

Method: an emulated machine like the lab's, whose clock counts instructions: what else this machine does changes no figure. There Debian's kernel
loads null_blk, then scsi_debug with each latency. Both keep their bytes in memory and have a queue for polled requests; scsi_debug gives one
only where the kernel could have two processors (possible_cpus=2; it has one). On each, with ext4, `joj bench --io` writes and reads 4 KiB at
random with O_DIRECT, by pwrite and pread (`direct`), and by io_uring with IORING_SETUP_IOPOLL (`polled`); and writes through the page cache with
fdatasync, which nothing polls for (a flush of scsi_debug's takes 48 ms, where it is given 20 us or more). By hand, never in `make test`: it takes some minutes. Needs QEMU, mkfs.ext4 and apt (Debian's kernel and busybox are fetched, 70 MB).

    tests/polled_io.py [--joj target/release/joj] [--cache DIR] [--json FILE]
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Name, module, its parameters, the disk that it makes.
DEVICES = [(f"null_blk, {name}", "null_blk", f"nr_devices=1 gb=1 memory_backed=1 no_sched=1 submit_queues=1 poll_queues=1 {how}", "nullb0")
           for name, how in [("softirq", "irqmode=1"), ("timer of 100 us", "irqmode=2 completion_nsec=100000")]]
DEVICES += [(f"scsi_debug, {ns // 1000} us", "scsi_debug", f"dev_size_mb=256 submit_queues=2 poll_queues=1 ndelay={ns}", "sda")
            for ns in (5_000, 20_000, 100_000, 500_000)]
# Besides those of the devices. Checksums come before those that look for them.
MODULES = ["crc32c_generic", "crct10dif_generic", "crc64_rocksoft_generic", "ext4", "sd_mod"]
JOBS, WAYS = ["randwrite", "randread"], ["direct", "polled", "fdatasync"]
RECORDS = 2048
# The lab's machine (crates/joj/src/machine/qemu/process.rs).
QEMU = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-M", "pc", "-accel", "tcg,thread=single",
        "-cpu", "max,la57=off,erms=off,fsrm=off", "-smp", "1", "-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm",
        "-m", "2048", "-serial", "stdio"]
KERNEL_WORDS = ("console=ttyS0 quiet loglevel=4 panic=-1 rdinit=/init nokaslr norandmaps transparent_hugepage=madvise mitigations=off "
                "random.trust_cpu=on clocksource=tsc tsc=reliable nowatchdog possible_cpus=2")
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
for module in $(cat /modules/list); do insmod /modules/$module.ko; done
measure() {
    name=$1; module=$2; disk=$3; shift 3
    insmod /modules/$module.ko "$@"
    for n in 1 2 3 4 5 6 7 8 9 10; do [ -b /dev/$disk ] || sleep 1; done
    [ -b /dev/$disk ] || poweroff -f
    mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 /dev/$disk 64M
    mount -t ext4 -o noatime /dev/$disk /mnt
    joj bench /mnt --io --jobs JOBS --ways WAYS --file BYTES --runs 1 --seconds 600 --json /tmp/out.json > /tmp/said 2>&1 || cat /tmp/said
    echo "RESULT $name"; tr -d '\\n' < /tmp/out.json; echo
    rm -f /tmp/out.json; umount /mnt; rmmod $module
}
MEASURE
poweroff -f
"""


def run(words, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.returncode}: {done.stderr}")
    return done.stdout


def packages(cache):
    """Debian's kernel and busybox, unpacked."""
    root = cache / "root"
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        image = re.search(r"Depends: (linux-image-\S+)", run(["apt-cache", "depends", "linux-image-amd64"]))[1]
        run(["apt-get", "-q", "download", image, "busybox-static"], cwd=cache)
        for package in cache.glob("*.deb"):
            run(["dpkg-deb", "-x", package, root])
            package.unlink()
        (root / "complete").touch()
    return root


def entry(name, mode, data=b""):
    """A file of an archive (cpio, newc)."""
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def in_order(files, wanted):
    """Names of modules, each behind those that it needs (modinfo(8): `depends`). What is built into the kernel is no file."""
    order = []

    def add(name):
        if name in files and name not in order:
            needed = re.search(rb"\0depends=([^\0]*)\0", files[name].read_bytes())[1].decode().replace("-", "_")
            for other in filter(None, needed.split(",")):
                add(other)
            order.append(name)

    for name in wanted:
        add(name)
    return order


def archive(root, joj):
    """What the machine boots from."""
    programs = {"bin/joj": joj, "bin/mkfs.ext4": pathlib.Path(shutil.which("mkfs.ext4", path="/sbin:/usr/sbin") or "mkfs.ext4").resolve()}
    files = {"bin/busybox": root / "bin/busybox"} | programs
    for program in programs.values():
        for library in re.findall(r"(/\S+) \(0x", run(["ldd", program])):
            files[library.lstrip("/")] = pathlib.Path(library).resolve()
    kernel = next((root / "lib/modules").iterdir())
    found = {path.stem.replace("-", "_"): path for path in (kernel / "kernel").rglob("*.ko")}
    devices = {module for _, module, _, _ in DEVICES}
    order = in_order(found, MODULES + sorted(devices))
    files |= {f"modules/{name}.ko": found[name] for name in order}
    loaded = "\n".join(name for name in order if name not in devices)
    lines = "\n".join(f"measure '{name}' {module} {disk} {options}" for name, module, options, disk in DEVICES)
    init = INIT.replace("MEASURE", lines).replace("JOBS", ",".join(JOBS)).replace("WAYS", ",".join(WAYS)).replace("BYTES", str(RECORDS * 4096))
    folders = {str(parent) for name in files for parent in pathlib.PurePath(name).parents} - {"."}
    folders |= {"proc", "sys", "dev", "tmp", "mnt"}
    parts = [entry(name, 0o40755) for name in sorted(folders)]
    parts += [entry(name, 0o100755, path.read_bytes()) for name, path in files.items()]
    parts += [entry("modules/list", 0o100644, loaded.encode()), entry("init", 0o100755, init.encode()), entry("TRAILER!!!", 0)]
    return b"".join(parts)


def figures(said):
    """Of what the machine said the document of each device, by its name."""
    found, name = {}, None
    for line in said.splitlines():
        line = line.strip()
        if line.startswith("RESULT "):
            name = line.removeprefix("RESULT ")
        elif name and line.startswith("{"):
            found[name], name = json.loads(line), None
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joj", type=pathlib.Path, default=pathlib.Path("target/release/joj"))
    parser.add_argument("--cache", type=pathlib.Path, help="where Debian's packages are kept; without it they are fetched each time")
    parser.add_argument("--json", type=pathlib.Path, help="the document of each device")
    parser.add_argument("--console", type=pathlib.Path, help="all that the machine said")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="polled-io-") as scratch:
        scratch = pathlib.Path(scratch)
        root = packages((options.cache or scratch).resolve())
        image = scratch / "image"
        image.write_bytes(archive(root, options.joj.resolve()))
        kernel = next((root / "boot").glob("vmlinuz-*"))
        said = run(QEMU + ["-kernel", kernel, "-initrd", image, "-append", KERNEL_WORDS], stdin=subprocess.DEVNULL)
    if options.console:
        options.console.write_text(said)
    found = figures(said)
    if set(found) != {name for name, *_ in DEVICES}:
        sys.exit(f"devices without figures; the machine said:\n{said}")
    if options.json:
        options.json.write_text(json.dumps(found))
    print("| device | job | direct | polled | fdatasync | sleeps a record |\n|---|---|---|---|---|---|")
    for name, document in found.items():
        for job in JOBS:
            rows = {row["key"]["way"]: row for row in document["io"] if row["key"]["job"] == job}
            refused = [f"{way}: {row.get('refused') or row.get('failure')}" for way, row in rows.items() if not row["records"]["runs"]]
            if refused:
                print(f"| {name} | {job} | {'; '.join(refused)} |")
                continue
            runs = [rows[way]["records"]["runs"][0] for way in WAYS if way in rows]
            times = [f"{run['latency']['p50_ns'] / 1000:.1f} us" for run in runs] + [""] * (len(WAYS) - len(runs))
            sleeps = [f"{run['switches_voluntary'] / run['transactions']:.2f}" for run in runs]
            print(f"| {name} | {job} | {' | '.join(times)} | {', '.join(sleeps)} |")


main()
