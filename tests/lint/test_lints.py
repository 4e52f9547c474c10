"""Shows that each lint can fail: a bad sample per rule, and a good one."""
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import lint_hardening  # noqa: E402
import lint_includes  # noqa: E402
import lint_symbols  # noqa: E402

BAD_INCLUDES = [
    ("src/base/a.cc", '#include "sys/x.h"', "base may not use sys"),
    ("src/sys/a.cc", '#include "policy/x.h"', "sys may not use policy"),
    ("src/policy/a.cc", '#include "plan/x.h"', "policy may not use plan"),
    ("src/plan/a.h", '  #  include "launch/x.h"', "plan may not use launch"),
    ("src/launch/a.cc", '#include "backend/x.h"', "launch may not use backend"),
    ("src/backend/a.cc", '#include "cli/x.h"', "backend may not use cli"),
    ("src/cli/a.cc", '#include "jail/x.h"', "cli may not use jail"),
    ("src/cli/a.cc", '#include "launch/x.h"', "cli may not use launch"),
    ("src/jail/a.cc", '#include "base/unique_fd.h"', "jail may include only"),
    ("src/jail/a.cc", '#include "plan/compile.h"', "jail may include only"),
    ("src/jail/a.cc", "#include <belljar/level.h>", "jail may not use"),
    ("src/jail/a.cc", "#include <fmt/format.h>", "jail may not use"),
    ("src/jail/a.cc", "#include <string>", "jail may not use"),
    ("src/base/a.cc", '#include "x.h"', "names no module"),
    ("src/base/a.cc", '#include "../sys/x.h"', "names no module"),
    ("src/base/a.cc", '#include "belljar/error.h"', "angle brackets"),
    ("src/base/a.cc", "#include <belljar/policy.h>", "belongs to policy"),
    ("src/launch/a.cc", "#include <belljar/engine.h>", "belongs to backend"),
    ("src/backend/a.cc", "#include <belljar/belljar.h>", "belongs to cli"),
    ("src/base/a.cc", "#include <belljar/unheard_of.h>", "not in the table"),
    ("src/cli/a.cc", "#include <toml++/toml.h>", "cli may not use"),
    ("src/policy/a.cc", "#include <CLI/CLI.hpp>", "policy may not use"),
    ("src/base/a.cc", "#include <gtest/gtest.h>", "_test.cc only"),
    ("src/base/a.cc", "#include <boost/json.hpp>", "no known library"),
    ("src/sys/a.cc", "#include <seccomp.h>", "for the build only"),
    ("src/helper/a.cc", "int x;", "not in the module table"),
    ("include/belljar/error.h", "#include <fmt/format.h>", "only the standard library"),
    ("include/belljar/error.h", "#include <unistd.h>", "only the standard library"),
    ("include/belljar/error.h", '#include "base/x.h"', "public header may not include"),
    ("include/belljar/error.h", "#include <belljar/policy.h>", "belongs to policy"),
    ("include/belljar/policy.h", "#include <belljar/engine.h>", "belongs to backend"),
    ("include/belljar/engine.h", "#include <belljar/belljar.h>", "is for users"),
]

GOOD_INCLUDES = {
    "src/base/a.cc": "#include <fmt/format.h>\n#include <belljar/error.h>\n#include <string>\n#include <unistd.h>\n",
    "src/base/a_test.cc": '#include "base/a.h"\n#include <gtest/gtest.h>\n',
    "src/jail/a.cc": '#include "plan/launch_plan.h"\n#include "sys/kernel_constants.h"\n#include <sys/mount.h>\n',
    "src/launch/a.cc": '#include "policy/x.h"\n#include "base/x.h"\n#include "jail/run_child.h"\n',
    "src/policy/a.cc": "#include <toml++/toml.h>\n#include <belljar/policy.h>\n",
    "src/cli/a.cc": "#include <CLI/CLI.hpp>\n#include <belljar/belljar.h>\n",
    "include/belljar/engine.h": "#include <belljar/policy.h>\n#include <vector>\n",
}


def put(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("name,line,rule", BAD_INCLUDES, ids=lambda v: str(v)[:40])
def test_bad_include_is_found(tmp_path, name, line, rule):
    (tmp_path / "include/belljar").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    put(tmp_path, name, f"// A comment\n{line}\n")
    found = lint_includes.breaches(tmp_path)
    assert len(found) == 1, found
    assert found[0].startswith(name + ":") and rule in found[0]


def test_good_includes_pass(tmp_path):
    for name, text in GOOD_INCLUDES.items():
        put(tmp_path, name, text)
    assert lint_includes.breaches(tmp_path) == []


@pytest.mark.parametrize("row,rule", [("| launch | x | plan, cli |", "names cli"), ("| launch | x | paln |", "names paln")])
def test_include_lint_reads_the_table_as_written(tmp_path, row, rule):
    page = tmp_path / "ARCHITECTURE.md"
    head = "| module | one job | may use |\n|---|---|---|\n| base | x | std |\n| plan | x | base |\n| jail | x | a header |\n"
    page.write_text(f"{head}| launch | x | plan |\n\n| cli | another table | all |\n")
    assert lint_includes.read_table(page) == {"base": [], "plan": ["base"], "jail": [], "launch": ["plan"]}
    page.write_text(f"{head}{row}\n\n")
    with pytest.raises(SystemExit, match=rule):
        lint_includes.read_table(page)


def test_include_lint_exit_status(tmp_path):
    put(tmp_path, "src/base/a.cc", '#include "cli/x.h"\n')
    argv = [sys.executable, ROOT / "tools/lint_includes.py", tmp_path]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == 1
    put(tmp_path, "src/base/a.cc", "#include <string>\n")
    assert subprocess.run(argv, capture_output=True, check=False).returncode == 0


def compiled(tmp_path, text, *flags):
    (tmp_path / "sample.cc").write_text(text)
    subprocess.run(["g++", "-std=c++23", "-O1", *flags, "sample.cc"], cwd=tmp_path, check=True)


BAD_CODE = [
    ("malloc", '#include <stdlib.h>\nvoid* f() { return malloc(3); }', "heap"),
    ("new", "int* f() { return new int; }", "heap"),
    ("throw", "void f() { throw 1; }", "throws"),
    ("printf", '#include <stdio.h>\nvoid f(int x) { printf("%d", x); }', "stdio"),
    ("mutex", "#include <pthread.h>\nvoid f(pthread_mutex_t* m) { pthread_mutex_lock(m); }", "locks"),
    ("static", "int g(); int& f() { static int x = g(); return x; }", "throws or unwinds"),
    ("setuid", "#include <unistd.h>\nint f() { return setresuid(1, 1, 1); }", "use syscall"),
    ("string", '#include <string>\nvoid f(std::string& s) { s += "x"; }', "heap"),
    ("strerror", "#include <string.h>\nchar* f(int e) { return strerror(e); }", "locale"),
    ("abort", "#include <stdlib.h>\nvoid f() { abort(); }", "__builtin_trap"),
]


@pytest.mark.parametrize("name,text,why", BAD_CODE, ids=[c[0] for c in BAD_CODE])
def test_bad_symbol_is_found(tmp_path, name, text, why):
    compiled(tmp_path, text, "-c", "-o", "sample.o")
    found = lint_symbols.breaches([str(tmp_path / "sample.o")])
    assert any(why in line for line in found), found


def test_good_symbols_pass(tmp_path):
    compiled(tmp_path, """
        #include <string.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        #include <errno.h>
        int f(const char* s) {
          char copy[64];
          memcpy(copy, s, strlen(s) + 1);
          if (syscall(SYS_getpid) < 0) _exit(errno);
          return copy[0];
        }""", "-c", "-fstack-protector-strong", "-o", "sample.o")
    assert lint_symbols.breaches([str(tmp_path / "sample.o")]) == []


HARD = ["-fstack-protector-all", "-D_FORTIFY_SOURCE=2", "-D_GLIBCXX_ASSERTIONS", "-Wl,-z,relro", "-Wl,-z,now",
        "-Wl,-z,noexecstack"]
PROGRAM = """
    #include <string.h>
    #include <string>
    int main(int argc, char** argv) { char b[8]; strcpy(b, argv[argc - 1]); return std::string(b)[argc]; }
"""


@pytest.mark.parametrize("flags,rule", [
    (["-no-pie"], "position independent"),
    (["-Wl,-z,norelro"], "relocations"),
    (["-Wl,-z,lazy"], "lazily"),
    (["-Wl,-z,execstack"], "executable stack"),
])
def test_missing_linker_hardening_is_found(tmp_path, flags, rule):
    compiled(tmp_path, PROGRAM, *HARD, *flags, "-o", "sample")
    assert any(rule in line for line in lint_hardening.program_breaches(str(tmp_path / "sample")))


@pytest.mark.parametrize("flag,rule", [
    ("-fno-stack-protector", "stack-protector"),
    ("-U_FORTIFY_SOURCE", "FORTIFY"),
    ("-U_GLIBCXX_ASSERTIONS", "ASSERTIONS"),
])
def test_missing_compiler_hardening_is_found(tmp_path, flag, rule):
    compiled(tmp_path, PROGRAM, *HARD, flag, "-c", "-o", "sample.o")
    assert any(rule in line for line in lint_hardening.library_breaches(str(tmp_path / "sample.o")))


def test_hardened_program_passes(tmp_path):
    compiled(tmp_path, PROGRAM, *HARD, "-pie", "-o", "sample")
    compiled(tmp_path, PROGRAM, *HARD, "-c", "-o", "sample.o")
    assert lint_hardening.program_breaches(str(tmp_path / "sample")) == []
    assert lint_hardening.library_breaches(str(tmp_path / "sample.o")) == []


@pytest.mark.long  # clang-tidy is installed for that alone.
def test_clang_tidy_configuration_finds_bugs(tmp_path):
    shutil.copy(ROOT / ".clang-tidy", tmp_path)
    put(tmp_path, "src/bad.cc", "int* F(int* p) { if (p == nullptr) { *p = 1; } return p; }\n")
    argv = ["clang-tidy-19", "--quiet", tmp_path / "src/bad.cc", "--", "-std=c++23"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "clang-analyzer-core.NullDereference" in done.stdout
