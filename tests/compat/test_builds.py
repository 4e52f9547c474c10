"""Compilers and build systems at work on small projects, without a network. C and git are the gate; what takes seconds is for
a long run."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

BUILD = ("--profile", "build")
RESULT = "fib 832040 words 5 caught"


def test_gcc_in_the_default_profile(sandbox, system):
    system("gcc")
    script = 'gcc -O2 -Wall -x c - -o hello && ./hello && objdump -d hello | grep -c "<main>:"'
    outcome = sandbox.bash(script, stdin='#include <stdio.h>\nint main(void) { puts("compiled"); }\n')
    assert outcome.stdout.splitlines() == ["compiled", "1"]


@pytest.mark.parametrize("name", ["undefined", "thread", "address"])
def test_sanitizers(sandbox, system, name):
    """Those of gcc. The leak check of the address sanitizer attaches to the process by ptrace, so it is off here."""
    system("gcc")
    source = ("#include <stdlib.h>\n"
              "int main(int n, char** v) { int* p = malloc(8); p[n] = n; n = p[n]; free(p); return n - 1; }\n")
    script = f'gcc -g -fsanitize={name} -x c - -o program && ./program && echo clean'
    outcome = sandbox.bash(script, stdin=source, options=(*BUILD, "--env", "ASAN_OPTIONS=detect_leaks=0"))
    assert outcome.stdout == "clean\n"


def test_fakeroot(sandbox, system):
    """Package builds. The real chown is left out: in a user namespace it fails in a way that fakeroot does not know."""
    system("fakeroot")
    script = "fakeroot sh -c 'touch f; chown 12:34 f; stat -c %u:%g f; id -u; tar -c f | tar -tv' | cut -c1-5"
    outcome = sandbox.bash(script, options=(*BUILD, "--env", "FAKEROOTDONTTRYCHOWN=1"))
    assert outcome.stdout.splitlines()[:2] == ["12:34", "0"]


def test_make(sandbox, system):
    for name in ("gcc", "g++", "make"):
        system(name)
    script = """
cp -r /programs/project . && cd project && make -s -j4 check && make -q && build/program
touch src/fib.c && ! make -q
"""
    assert sandbox.bash(script, options=BUILD).stdout.splitlines() == [RESULT]


@pytest.mark.long
def test_cmake(sandbox, system):
    for name, package in (("g++", ""), ("cmake", ""), ("make", "")):
        system(name, package)
    script = """
cmake -S /programs/project -B out -G "Unix Makefiles" >log && cmake --build out -j 4 >>log
ctest --test-dir out -Q && out/program
"""
    assert sandbox.bash(script, options=BUILD).stdout.splitlines() == [RESULT]


@pytest.mark.long
def test_cmake_into_a_mounted_directory(sandbox, system, tmp_path):
    """The usual case: the caller's own sources, changed on both sides of the wall."""
    for name, package in (("g++", ""), ("cmake", ""), ("ninja", "ninja-build")):
        system(name, package)
    source = tmp_path / "source"
    shutil.copytree(pathlib.Path(__file__).parent / "programs" / "project", source)
    script = "cd /source && cmake -S . -B out -G Ninja >log && cmake --build out >>log && out/program"
    outcome = sandbox.bash(script, options=(*BUILD, "--rw", f"{source}:/source"))
    assert outcome.stdout.splitlines() == [RESULT]
    # The result belongs to the caller and works outside.
    program = source / "out" / "program"
    assert program.stat().st_uid == os.geteuid()
    assert subprocess.run([program], cwd=tmp_path, capture_output=True, text=True).stdout.splitlines() == [RESULT]
    shutil.rmtree(source)


def test_git(sandbox, system):
    system("git")
    script = """
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
git init -q -b main work && cd work
for n in 1 2 3; do seq $((n * 1000)) > file$n; git add .; git commit -qm "commit $n"; done
git checkout -q -b side HEAD~1; echo side > side; git add side; git commit -qm side; git merge -q --no-edit main
git gc -q; git fsck --strict 2>&1 | grep -v dangling || true; git log --oneline | wc -l
cd ..; git clone -q work local; git clone -q --bare "file://$PWD/work" bare.git
git -C bare.git rev-parse --is-bare-repository
cd local; git pull -q; git checkout -q -b pushed; echo x > x; git add x; git commit -qm x
git push -q ../bare.git pushed
git stash list; git diff HEAD~1 --stat | tail -1; git worktree add -q ../tree HEAD~1; ls ../tree
git config --global user.name guest; git config user.name
 git archive HEAD | tar -t | wc -l; git grep -c 999 -- file1; git blame x | wc -l; git status --short | wc -l
"""
    assert sandbox.bash(script).stdout.splitlines() == [
        "5", "true", " 1 file changed, 1 insertion(+)", "file1", "file2", "file3", "side", "guest", "5", "file1:1", "1",
        "0"]


def test_git_in_a_mounted_repository(sandbox, system, tmp_path):
    """The caller's own repository: git inside must not call it somebody else's."""
    system("git")
    subprocess.run(["git", "init", "-q", tmp_path / "r"], check=True)
    script = """
cd /r; echo x > f; git add f; git -c user.name=a -c user.email=a@example.com commit -qm first; git log --format=%s
"""
    assert sandbox.bash(script, options=("--rw", f"{tmp_path}/r:/r")).stdout == "first\n"
    log = subprocess.run(["git", "-C", tmp_path / "r", "log", "--format=%s"], capture_output=True, text=True)
    assert log.stdout == "first\n"


def go_options():
    settings = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local",
                "GOCACHE": "/tmp/home/cache", "GOPATH": "/tmp/home/go"}
    return [*BUILD, *[word for key, value in settings.items() for word in ("--env", f"{key}={value}")]]


@pytest.mark.long
def test_go_by_name(sandbox, tool):
    """`belljar run -- go` finds the go of the caller's PATH, also where the system's PATH does not lead."""
    tool("go", "golang-go")
    assert re.match(r"go version go1\.\d+", sandbox.run("go", "version").stdout)


@pytest.mark.long
def test_go_build_run_test(sandbox, tool):
    go = os.path.realpath(tool("go", "golang-go"))
    if not go.startswith("/usr/"):
        pytest.skip(f"go is at {go}, not under /usr; install the Debian package golang-go")
    script = """
cp -r /programs/go_module m && cd m && "$1" build -o program . && ./program && "$1" run .
"$1" test -vet=off ./sum | grep -c ^ok
"""
    lines = sandbox.bash(script, go, options=go_options()).stdout.splitlines()
    assert lines == ["go 4950 served child 9"] * 2 + ["1"]


@pytest.mark.long
def test_cargo_of_the_system(sandbox, system):
    cargo = system("cargo")
    script = """
cp -r /programs/rust_crate c && cd c && "$1" build -q --offline && target/debug/compat && "$1" test -q --offline
"""
    outcome = sandbox.bash(script, cargo, options=[*BUILD, "--env", "CARGO_HOME=/tmp/home/cargo"])
    assert outcome.stdout.splitlines()[0] == "rust 90 socket child 7"
    assert "1 passed; 0 failed" in outcome.stdout


@pytest.mark.long
def test_cargo_of_rustup(sandbox, tmp_path):
    """A toolchain outside /usr: argv[0] leads to its prefix, which comes along read-only."""
    home = pathlib.Path(os.environ.get("RUSTUP_HOME", pathlib.Path.home() / ".rustup"))
    toolchains = sorted(home.glob("toolchains/*/bin/cargo")) if os.access(home, os.X_OK) else []
    if not toolchains:
        pytest.skip(f"no rustup toolchain that this user can read in {home}; the system's cargo is tested on its own")
    crate = tmp_path / "crate"
    shutil.copytree(pathlib.Path(__file__).parent / "programs" / "rust_crate", crate)
    outcome = sandbox.run(toolchains[-1], "run", "-q", "--offline", "--manifest-path", "/crate/Cargo.toml",
                          options=[*BUILD, "--rw", f"{crate}:/crate", "--env", "CARGO_HOME=/tmp/home/cargo"])
    assert outcome.stdout == "rust 90 socket child 7\n"
    assert (crate / "Cargo.lock").stat().st_uid == os.geteuid()


@pytest.mark.long
def test_cargo_by_name(sandbox):
    """`belljar run -- cargo`: where PATH leads to rustup's, its proxy finds a toolchain."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not here; install the Debian package cargo")
    expected = subprocess.run(["cargo", "--version"], capture_output=True, text=True, cwd="/").stdout
    if not expected.startswith("cargo "):
        pytest.skip("the cargo of PATH does not work outside either")
    assert sandbox.run("cargo", "--version").stdout == expected


@pytest.mark.long
def test_java(sandbox, system):
    system("javac", "default-jdk-headless")
    script = """
javac -d classes /programs/java/Hello.java && java -cp classes Hello
jar --create --file h.jar -C classes . && jar tf h.jar | grep -c Hello
"""
    lines = sandbox.bash(script).stdout.splitlines()
    assert lines == ["java 2999997 served child Asia/Tokyo guest /tmp/home", "1"]


@pytest.mark.long
def test_npm_without_a_network(sandbox, tool):
    tool("npm")
    script = """
mkdir -p package dependency && cd dependency && echo 'module.exports = () => "dependency"' > index.js
echo '{"name": "dependency", "version": "1.0.0"}' > package.json && cd ../package
echo '{"name": "p", "version": "1.0.0",
  "scripts": {"start": "node -p \\"require(\\\\\\"dependency\\\\\\")()\\""}}' > package.json
npm install --silent --offline --no-audit --no-fund ../dependency && npm run --silent start && npm pack --silent
"""
    lines = sandbox.bash(script, options=BUILD).stdout.splitlines()
    assert "dependency" in lines and lines[-1] == "p-1.0.0.tgz", json.dumps(lines)
