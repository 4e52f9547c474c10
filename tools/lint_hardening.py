#!/usr/bin/env python3
"""Checks that a program was built with the hardening that cmake/Flags.cmake asks for.

    tools/lint_hardening.py build/test/src/cli/belljar build/test/libbelljar.a

What the linker does is read from the program; what the compiler does is read from the library's undefined symbols,
because a static program holds libc's own hardened code in any case.
"""
import re
import subprocess
import sys


def output(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def program_breaches(path):
    text = output("readelf", "-hldW", path)
    stack = re.search(r"GNU_STACK.*? (RWE|RW) ", text)
    rules = {
        "is not position independent (-pie, -static-pie)": re.search(r"Type:\s+DYN", text) and "PIE" in text,
        "has no read-only relocations (-z relro)": "GNU_RELRO" in text,
        "binds symbols lazily (-z now)": re.search(r"BIND_NOW|Flags:.*\bNOW\b", text),
        "has an executable stack (-z noexecstack)": stack and stack.group(1) == "RW",
        "has a segment that is writable and executable": not re.search(r"LOAD .* RWE ", text),
    }
    return [rule for rule, held in rules.items() if not held]


def library_breaches(path):
    text = output("nm", "-u", path)
    rules = {
        "was compiled without -fstack-protector-strong": "__stack_chk_fail" in text,
        "was compiled without -D_FORTIFY_SOURCE=2": re.search(r"__\w+_chk\b", text),
        "was compiled without -D_GLIBCXX_ASSERTIONS": "__glibcxx_assert_fail" in text,
    }
    return [rule for rule, held in rules.items() if not held]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, library = sys.argv[1:]
    found = [f"{program}: {rule}" for rule in program_breaches(program)]
    found += [f"{library}: {rule}" for rule in library_breaches(library)]
    print("\n".join(found) if found else "lint_hardening: all in place")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
