#!/usr/bin/env python3
"""Runs clang-tidy over the sources that a build directory compiles, several at a time.

    tools/lint_tidy.py BUILD_DIR [--deep] [FILE…]

The path-sensitive analyzer (clang-analyzer-*) takes three quarters of the time, so it runs only with --deep; so do the
unit tests, whose assertions the check for unchecked optionals can't see through. A file that passed is remembered in BUILD_DIR/tidy by a hash of everything that its result depends on, and is not looked at again
until that changes.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def sources(build):
    """Each of our C++ files with its compile command, once."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.suffix == ".cc" and ROOT in path.parents and build not in path.parents and path.parent.name != "cmake":
            found[path] = entry["command"]
    return found


def is_test(path):
    return path.name.endswith("_test.cc")


def own_includes(path, seen):
    """The files of ours that `path` includes, at any depth."""
    for quoted, angled in re.findall(r'^\s*#\s*include\s*(?:"([^"]+)"|<(belljar/[^>]+)>)', path.read_text(), re.M):
        header = ROOT / "src" / quoted if quoted else ROOT / "include" / angled
        if header.exists() and header not in seen:
            seen.add(header)
            own_includes(header, seen)
    return seen


def key(path, command, checks):
    digest = hashlib.sha256(f"{command} {checks}".encode())
    for part in [ROOT / ".clang-tidy", path, *sorted(own_includes(path, set()))]:
        digest.update(part.read_bytes())
    return digest.hexdigest()


def check(build, path, checks):
    if is_test(path):
        checks += ",-bugprone-unchecked-optional-access"
    done = subprocess.run(["clang-tidy-19", "--quiet", f"--checks={checks}", "-p", build, path], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip() or done.stderr.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--deep", action="store_true", help="with the path-sensitive analyzer")
    options = parser.parse_args()
    build = options.build.resolve()
    passed = build / "tidy"
    passed.mkdir(exist_ok=True)
    checks = "" if options.deep else "-clang-analyzer-*"
    todo = {path: key(path, command, checks) for path, command in sources(build).items()
            if options.deep or options.files or not is_test(path)}
    if options.files:
        wanted = {path.resolve() for path in options.files}
        todo = {path: k for path, k in todo.items() if path in wanted}
    total = len(todo)
    todo = {path: k for path, k in todo.items() if not (passed / k).exists()}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        waiting = {pool.submit(check, build, path, checks): path for path in todo}
        for done in concurrent.futures.as_completed(waiting):
            status, text = done.result()
            if status == 0:
                (passed / todo[waiting[done]]).touch()
            else:
                failed += 1
                print(text, flush=True)
    print(f"lint_tidy: {total} files, {len(todo)} looked at, {failed} with warnings")
    sys.exit(1 if failed or not total else 0)


if __name__ == "__main__":
    main()
