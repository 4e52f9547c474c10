"""CPython: the system's, and the one that the caller's PATH leads to (pyenv, a virtual environment)."""

import os
import shutil
import subprocess

import pytest


def real_interpreter(path):
    """Its version and prefix; None when it does not even run outside."""
    code = "import sys; print(sys.version_info[:3], sys.prefix)"
    process = subprocess.run([path, "-c", code], capture_output=True, text=True)
    return process.stdout.strip() if process.returncode == 0 else None


SYSTEM = "/usr/bin/python3"
INTERPRETERS = [SYSTEM]
if shutil.which("python3") not in (None, SYSTEM, "/bin/python3") and real_interpreter("python3") not in (
        None, real_interpreter(SYSTEM)):
    INTERPRETERS.append("python3")


@pytest.fixture(params=INTERPRETERS, ids=lambda path: "system" if path == SYSTEM else "from-path")
def python(request):
    return request.param


def test_asyncio(sandbox, python):
    assert sandbox.run(python, "/programs/asyncio_work.py").stdout == "asyncio ok 499500\n"


def test_threading(sandbox, python):
    assert sandbox.run(python, "/programs/threads_work.py").stdout == "threads ok 100000 285\n"


def test_multiprocessing(sandbox, python):
    assert sandbox.run(python, "/programs/multiprocessing_work.py").stdout.splitlines() == [
        "fork ok", "spawn ok", "forkserver ok", "pool 328350", "manager {'key': [1, 2, 3]}", "shared_memory hello True",
        "executor [9, 16]"]


def test_files_and_sqlite(sandbox, python):
    assert sandbox.run(python, "/programs/files_work.py").stdout == "files ok 800\n"


def test_processes(sandbox, python):
    assert sandbox.run(python, "/programs/processes_work.py").stdout == "processes ok\n"


def test_network_on_own_loopback(sandbox, python):
    assert sandbox.run(python, "/programs/network_work.py").stdout.splitlines() == [
        "certificates True", "outside Network is unreachable", "network ok"]


def test_system(sandbox, python):
    assert sandbox.run(python, "/programs/system_work.py").stdout.splitlines() == [
        "user guest guest guest", "home /tmp/home /tmp/home /tmp/home", "cwd /workspace /tmp",
        "zone 2024-01-15T00:00:00+01:00 True", "ctypes 1.0 [1, 2, 3, 4, 5]", "text C.UTF-8 UTF-8 1", "system ok"]


def test_venv_made_inside(sandbox, python):
    assert sandbox.run(python, "/programs/venv_work.py").stdout == "/workspace/env True\n"


@pytest.mark.long
def test_venv_with_pip_made_inside(sandbox):
    if subprocess.run([SYSTEM, "-c", "import ensurepip"], capture_output=True).returncode != 0:
        pytest.skip("the system's python has no ensurepip; install the Debian package python3-venv")
    outcome = sandbox.run(SYSTEM, "/programs/venv_work.py", "--with-pip")
    assert outcome.stdout.splitlines() == ["/workspace/env True", "pip"]


def test_python3_by_name(sandbox):
    """`belljar run -- python3`: the interpreter that the caller would get, whole."""
    expected = real_interpreter("python3")
    assert expected is not None
    code = "import sys, ssl, sqlite3, ctypes, lzma, json; print(sys.version_info[:3], sys.prefix)"
    assert sandbox.run("python3", "-c", code).stdout.strip() == expected


@pytest.fixture(params=INTERPRETERS, ids=lambda path: "system" if path == SYSTEM else "from-path")
def environment(request, tmp_path):
    """A virtual environment made outside, with a module and a console script in it."""
    path = tmp_path / "env"
    subprocess.run([request.param, "-m", "venv", "--without-pip", path], check=True, capture_output=True)
    (packages,) = path.glob("lib/python3*/site-packages")
    (packages / "compat_sample.py").write_text("def main():\n    print('sample', __file__)\n")
    script = path / "bin" / "compat-sample"
    script.write_text(f"#!{path}/bin/python\nimport compat_sample\ncompat_sample.main()\n")
    script.chmod(0o755)
    return path


def test_venv_made_outside(sandbox, environment):
    code = "import sys, compat_sample; print(sys.prefix); compat_sample.main()"
    outcome = sandbox.run(environment / "bin" / "python", "-c", code)
    assert outcome.stdout.splitlines()[0] == str(environment)
    assert outcome.stdout.splitlines()[1].startswith(f"sample {environment}/lib/")


def test_venv_made_outside_and_activated(sandbox, environment):
    outcome = sandbox.run("python", "-c", "import compat_sample, sys; print(sys.prefix)",
                          env={"PATH": f"{environment}/bin:{os.environ['PATH']}", "VIRTUAL_ENV": str(environment)})
    assert outcome.stdout.strip() == str(environment)


def test_console_script_of_a_venv(sandbox, environment):
    assert sandbox.run(environment / "bin" / "compat-sample").stdout.startswith(f"sample {environment}/")


def test_venv_is_read_only_inside(sandbox, environment):
    (module,) = environment.glob("lib/python3*/site-packages/compat_sample.py")
    before = module.read_text()
    outcome = sandbox.attempt(environment / "bin" / "python", "-c", "import compat_sample as c; open(c.__file__, 'a')")
    assert outcome.result["exit_code"] == 1
    assert "Read-only file system" in outcome.stderr or "Permission denied" in outcome.stderr, outcome.describe()
    assert module.read_text() == before


def test_a_home_directory_is_no_prefix(sandbox, tmp_path):
    """A program in ~/bin comes along, but never the home with it, whatever marks of an interpreter it bears."""
    for mark in ("lib/node_modules", "release", "lib/modules"):
        (tmp_path / mark).mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "secret").write_text("secret\n")
    tool = tmp_path / "bin" / "tool"
    tool.write_text(f"#!/bin/sh\necho ran; cat {tmp_path}/secret\n")
    tool.chmod(0o755)
    outcome = sandbox.attempt(tool, env={"HOME": str(tmp_path)})
    assert outcome.stdout == "ran\n" and "No such file" in outcome.stderr, outcome.describe()
