#!/usr/bin/env python3
"""Checks every #include of include/ and src/ against the module table of ARCHITECTURE.md.

    tools/lint_includes.py [ROOT]

The table is read from that page, so that it can't say something else than what is checked. A module may include itself
and the modules that its row names, not what those use in turn; a row names only modules of rows above it, since arrows go
only downwards. There is no list of exceptions. Prints "file:line: rule" for each breach and exits 1 if there is one.
"""
import pathlib
import re
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[1]


def read_table(page):
    """Module -> the modules that its row names, from the rows "| module | one job | may use |"."""
    rows = page.read_text(encoding="utf-8").split("| module | one job | may use |\n", 1)[1].split("\n\n", 1)[0]
    uses = {}
    for row in rows.splitlines()[1:]:
        module, _, may_use = (cell.strip() for cell in row.strip("|").split("|"))
        named = [name for name in re.split(r"[ ,]+", may_use) if re.fullmatch(r"[a-z]+", name)]
        uses[module] = [name for name in named if name in uses]
        unknown = set(named) - set(uses) - {"std", "fmt", "libc"}
        if unknown and module != "jail":  # The one row with a sentence: see JAIL_HEADERS.
            sys.exit(f"lint_includes: {page.name}: the row of {module} names {', '.join(sorted(unknown))}, not above it")
    uses["jail"] = []
    return uses


USES = read_table(PROJECT / "ARCHITECTURE.md")

# The child side executes a plan and nothing else; of other modules it sees only plain data.
JAIL_HEADERS = {"plan/launch_plan.h", "sys/kernel_constants.h"}

# Which module each public header belongs to; belljar.h is for users, of whom cli is one.
PUBLIC = {
    "caller.h": "sys",
    "channel.h": "base",
    "error.h": "base",
    "result.h": "base",
    "level.h": "base",
    "limit.h": "base",
    "version.h": "base",
    "policy.h": "policy",
    "run.h": "launch",
    "engine.h": "backend",
    "live_sandbox.h": "backend",
    "running_command.h": "backend",
    "belljar.h": "cli",
}

# Outside libraries: which modules may include them. Tests beside the code may use GoogleTest everywhere.
LIBRARIES = {
    "fmt": set(USES) - {"jail"},
    "toml++": {"policy"},
    "CLI": {"cli"},
}
TEST_LIBRARIES = {"gtest", "gmock"}

# Directories of libc and the kernel; a name without a directory is the standard library or libc.
SYSTEM = {"sys", "linux", "asm", "arpa", "net", "netinet", "bits"}
# What a public header or the jail may take from C++: the jail only those that bring no code along.
JAIL_CPP = {"array", "bit", "cerrno", "climits", "concepts", "csignal", "cstddef", "cstdint", "cstring", "limits",
            "span", "string_view", "type_traits", "utility", "atomic", "initializer_list"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def allowed(module):
    """What a module may include: itself, and what its row names."""
    return {module, *USES[module]}


def check_module_header(owner, header, test):
    target = header.split("/")[0]
    if "/" not in header or target not in USES:
        return f'"{header}" names no module: write "module/file.h" (modules: {", ".join(USES)})'
    if owner == "public":
        return f'a public header may not include "{header}": users of the library do not have it'
    if target == owner:
        return None
    if owner == "jail":
        if test or header in JAIL_HEADERS:
            return None
        return f'jail may include only {", ".join(sorted(JAIL_HEADERS))} from other modules, not "{header}"'
    if target not in allowed(owner):
        others = ", ".join(sorted(allowed(owner) - {owner})) or "no other module"
        return f'{owner} may not use {target} ("{header}"); it may use {others}'
    return None


def check_public_header(owner, includer, header, test):
    name = header.split("/", 1)[1]
    module = PUBLIC.get(name)
    if module is None:
        return f"<{header}> is not in the table of public headers in tools/lint_includes.py"
    if owner == "public":
        if name == "belljar.h":
            return "<belljar/belljar.h> is for users; a public header includes just what it needs"
        owner = PUBLIC.get(includer)
        if owner is None:
            return f"{includer} is not in the table of public headers in tools/lint_includes.py"
    if owner == "jail" and not test:
        return f"jail may not use <{header}>: it executes plain data"
    if owner != "cli" and module not in allowed(owner):
        return f"{owner} may not use <{header}>, which belongs to {module}"
    return None


def check_library(owner, header, test):
    head = header.split("/")[0]
    if head in TEST_LIBRARIES:
        return None if test else f"<{header}> is for *_test.cc only"
    if "/" in header and head in LIBRARIES:
        if owner == "public":
            return f"a public header may use only the standard library, not <{header}>"
        if owner not in LIBRARIES[head]:
            return f'{owner} may not use <{header}>; {head} is for {", ".join(sorted(LIBRARIES[head]))}'
        return None
    if header == "seccomp.h":
        return "libseccomp is for the build only (names of system calls); the program does not use <seccomp.h>"
    is_c = header.endswith(".h")
    if owner == "public" and is_c:
        return f"a public header may use only the standard library, not <{header}>"
    if "/" in header and head not in SYSTEM:
        return f"<{header}> comes from no known library; add it to LIBRARIES in tools/lint_includes.py"
    if owner == "jail" and not is_c and not test and header not in JAIL_CPP:
        return f"jail may not use <{header}>: it may bring heap, locks or exceptions into the child"
    return None


def check_line(owner, path, line):
    """The broken rule, or None. `owner` is a module's name, or "public" for include/belljar."""
    match = INCLUDE.match(line)
    if not match:
        return None
    quoted, angled = match.groups()
    test = path.name.endswith("_test.cc") or path.name.endswith("_test.h")
    if quoted:
        if quoted.startswith("belljar/"):
            return f'write <{quoted}>: public headers are included with angle brackets'
        return check_module_header(owner, quoted, test)
    if angled.startswith("belljar/"):
        return check_public_header(owner, path.name, angled, test)
    return check_library(owner, angled, test)


def sources(root):
    """(owner, path) of every file that the table speaks about."""
    for path in sorted((root / "include" / "belljar").glob("**/*.h")):
        yield "public", path
    for directory in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        for path in sorted(p for p in directory.glob("**/*") if p.suffix in {".h", ".cc", ".c", ".inc"}):
            yield directory.name, path


def breaches(root):
    found = []
    for owner, path in sources(root):
        where = path.relative_to(root)
        if owner != "public" and owner not in USES:
            found.append(f"{where}:1: src/{owner} is not in the module table")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            rule = check_line(owner, path, line)
            if rule:
                found.append(f"{where}:{number}: {rule}")
    return found


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else PROJECT).resolve()
    if not any(True for _ in sources(root)):
        sys.exit(f"lint_includes: no sources under {root}")
    found = breaches(root)
    print("\n".join(found) if found else f"lint_includes: {sum(1 for _ in sources(root))} files follow the module table")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
