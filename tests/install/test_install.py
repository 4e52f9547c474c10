"""Installs Belljar into an empty prefix and builds the example outside the tree against it, by CMake and pkg-config."""
import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("BELLJAR_BUILD", HERE.parents[1] / "build" / "test"))
SAID = "exited: six times seven is 42"


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=1200, **options)
    assert done.returncode == 0, f"{argv} exited {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    path = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", path)
    return path


@pytest.fixture
def example(tmp_path):
    """A copy, so that nothing of the checkout can be found by accident."""
    return shutil.copytree(HERE / "example", tmp_path / "example")


def test_installed_files(prefix):
    names = {str(p.relative_to(prefix)) for p in prefix.glob("**/*") if p.is_file()}
    for wanted in ("bin/belljar", "libexec/belljar/belljar-corpus", "include/belljar/belljar.h", "include/belljar/engine.h"):
        assert wanted in names
    assert any(n.endswith("/libbelljar.a") for n in names)
    assert any(n.endswith("/pkgconfig/belljar.pc") for n in names)
    assert any(n.startswith("share/belljar/profiles/") for n in names)
    private = [n for n in names if n.startswith("include/") and not n.startswith("include/belljar/")]
    assert not private, f"headers of modules or libraries were installed: {private}"


def test_installed_program_runs(prefix):
    assert run(prefix / "bin/belljar", "run", "--", "/bin/echo", "hello") == "hello\n"


def test_installed_program_proves_itself(prefix):
    """The attacks are found in ../libexec/belljar, wherever the prefix is."""
    assert "0 escaped" in run(prefix / "bin/belljar", "prove", "A1a", "C42a")


def test_each_public_header_compiles_alone(prefix, tmp_path):
    for header in sorted((prefix / "include/belljar").glob("*.h")):
        source = tmp_path / "alone.cc"
        source.write_text(f"#include <belljar/{header.name}>\n")
        run("g++", "-std=c++23", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
            f"-I{prefix}/include", source)


def test_example_by_cmake(prefix, example):
    build = example / "build"
    run("cmake", "-G", "Ninja", "-S", example, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    assert run(build / "example").strip() == SAID


def test_example_by_pkg_config(prefix, example):
    directory = next(prefix.glob("lib*/**/pkgconfig"))
    env = {**os.environ, "PKG_CONFIG_PATH": str(directory)}
    flags = run("pkg-config", "--cflags", "--libs", "belljar", env=env).split()
    program = example / "by-pkg-config"
    run("g++", "-std=c++23", example / "example.cc", "-o", program, *flags)
    assert run(program).strip() == SAID


def test_release_can_not_leave_a_guard_out(tmp_path):
    """`prove --without` weakens sandboxes; it exists in test builds alone."""
    root = HERE.parents[1]
    run("cmake", "-G", "Ninja", "-S", root, "-B", tmp_path, "-DCMAKE_BUILD_TYPE=Release", "-DBELLJAR_TESTS=OFF")
    run("cmake", "--build", tmp_path, "--target", "belljar", "belljar-corpus")
    program = tmp_path / "src/cli/belljar"
    done = subprocess.run([program, "prove", "--without", "seccomp", "A1a"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and "--without" in done.stderr
    assert b"Test builds only" not in program.read_bytes()
    assert "0 escaped" in run(program, "prove", "A1a")
