#!/usr/bin/env python3
"""Goal: outside of the emulated machine, too, a replay gives the disk as much as the program does.

Method: each program of replay_time.py is recorded and replayed by turns, each time on a new filesystem of a loop device of its own. What
the device got until the last call is the kernel's count for the program, and joj's for the replay. Medians of the rounds: a journal that
commits every five seconds writes not always the same. As root, by hand, never in `make test`: it takes ten minutes.

    tests/replay_blocks.py [--joj target/release/joj] [--dir DIR] [--filesystem ext4,xfs,btrfs] [--rounds 3] [--only WORDS]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import replay_time

IMAGE_BYTES = 1 << 30
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q"],
    "btrfs": ["mkfs.btrfs", "-q"],
}


def run(*words, cwd=None):
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=cwd).stdout.strip()


class Volume:
    """A new filesystem, mounted as long as it is entered."""

    def __init__(self, kind, directory):
        self.kind, self.image, self.mount = kind, directory / "image", directory / "mount"

    def __enter__(self):
        self.image.unlink(missing_ok=True)
        with open(self.image, "wb") as image:
            image.truncate(IMAGE_BYTES)
        self.mount.mkdir(exist_ok=True)
        self.loop = run("losetup", "-f", "--show", self.image)
        try:
            run(*MAKE[self.kind], self.loop)
            run("mount", self.loop, self.mount)
        except subprocess.CalledProcessError:
            run("losetup", "-d", self.loop)
            raise
        self.place = self.mount / "app/files"
        self.place.mkdir(parents=True)
        run("sync", "-f", self.mount)
        return self

    def __exit__(self, *_):
        run("umount", self.mount)
        run("losetup", "-d", self.loop)

    def written_kib(self):
        return int(pathlib.Path(f"/sys/block/{pathlib.Path(self.loop).name}/stat").read_text().split()[6]) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joj", default="target/release/joj")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--dir", default=".")
    parser.add_argument("--filesystem", default="ext4,xfs,btrfs")
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--only", default="", help="programs whose name has this")
    options = parser.parse_args()
    joj = str(pathlib.Path(options.joj).resolve())
    print("| program | filesystem | program KiB | replay KiB | |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="replay-blocks-", dir=options.dir) as name:
        directory = pathlib.Path(name).resolve()
        replay_time.PLACE = str(directory / "mount/app/files")
        app, result = str(directory / "app.joj"), directory / "result.json"
        for kind in options.filesystem.split(","):
            for title, program in replay_time.programs(joj, options.python).items():
                if options.only not in title:
                    continue
                by_program, by_replay = [], []
                for _ in range(options.rounds):
                    with Volume(kind, directory) as volume:
                        before = volume.written_kib()
                        run(joj, "record", "-o", app, "--", *program, cwd=volume.place)
                        by_program.append(volume.written_kib() - before)
                    with Volume(kind, directory) as volume:
                        run(joj, "replay", app, volume.place, "--json", result)
                        by_replay.append(json.loads(result.read_text())["device"]["written_bytes"] / 1024)
                theirs, ours = statistics.median(by_program), statistics.median(by_replay)
                print(f"| {title} | {kind} | {theirs:,.0f} | {ours:,.0f} | {ours / theirs - 1:+.1%} |", flush=True)


if __name__ == "__main__":
    main()
