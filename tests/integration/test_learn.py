"""`belljar learn`: three programs get policies under which they pass, and not without any one of the grants."""

import json
import os
import pathlib
import subprocess

import pytest

import harness
from harness import BELLJAR, PYTHON, guest

GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


def learn(directory, *arguments, form="namespaces", **options):
    prefix = [guest("forbid_userns")] if form == "landlock-only" else []
    options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([*prefix, BELLJAR, "learn", "--json", "--quiet", *map(str, arguments)], cwd=directory,
                          capture_output=True, text=True, timeout=600, **options)
    lesson = json.loads(done.stdout) if done.stdout else {}
    return done, lesson


def run_under(directory, policy, *command):
    return subprocess.run([BELLJAR, "run", "--quiet", "--policy", policy, "--", *map(str, command)], cwd=directory,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def check_learned(directory, tmp_path, command, passed, reset=lambda: None, flags=()):
    """Learns; the example passes under the policy, and doesn't when any one of its grants is taken away."""
    policy = tmp_path / "learned.toml"
    done, lesson = learn(directory, *flags, "-o", policy, "--", *command)
    assert done.returncode == 0 and lesson["standing"] == "minimal", (done.stderr, lesson)
    assert policy.read_text() == lesson["toml"]
    reset()
    result = run_under(directory, policy, *command)
    assert passed(result), (result.stdout, result.stderr, policy.read_text())
    assert lesson["grants"]
    for grant in lesson["grants"]:
        reset()
        fewer = json.loads(json.dumps(lesson["policy"]))
        fewer["files"]["mounts"] = [m for m in fewer["files"]["mounts"] if m["target"] != grant["target"]]
        assert len(fewer["files"]["mounts"]) == len(lesson["grants"]) - 1
        smaller = tmp_path / "smaller.json"
        smaller.write_text(json.dumps(fewer))
        assert not passed(run_under(directory, smaller, *command)), f"it passes without {grant}"
    reset()
    return lesson


@pytest.fixture
def place(tmp_path):
    """A directory that only the example knows of."""
    tmp_path.chmod(0o755)
    directory = tmp_path / "place"
    directory.mkdir()
    return directory


def test_python(place, tmp_path):
    for name in ("lib", "data", "job"):
        (place / name).mkdir()
    (place / "lib" / "ours.py").write_text("def total(path): return sum(int(line) for line in open(path))\n")
    (place / "data" / "x.csv").write_text("40\n2\n")
    (place / "job" / "job.py").write_text(f"import sys; sys.path.insert(0, {str(place / 'lib')!r})\nimport ours\n"
                                          f"print(ours.total({str(place / 'data' / 'x.csv')!r}))\n")
    lesson = check_learned(place / "job", tmp_path, [PYTHON, "job.py"], lambda r: (r.returncode, r.stdout) == (0, "42\n"))
    granted = {grant["target"] for grant in lesson["grants"]}
    assert str(place / "data" / "x.csv") in granted
    assert all(grant["access"] == "ro" for grant in lesson["grants"]), "it writes nothing but caches"
    assert "environment" in lesson["toml"] and "# open" in lesson["toml"]


def test_git(place, tmp_path):
    (place / "work").mkdir()
    origin = place / "origin"
    run = lambda *a: subprocess.run(["git", *map(str, a)], check=True, env={**os.environ, **GIT, "HOME": str(tmp_path)},
                                    stdout=subprocess.DEVNULL)
    run("init", "-q", "-b", "main", origin)
    (origin / "file").write_text("x")
    run("-C", origin, "add", "file")
    run("-C", origin, "commit", "-qm", "first")
    script = place / "work.sh"
    script.write_text(f"set -e\ngit clone -q {origin} {place}/work/clone\ncd {place}/work/clone\necho more >> file\n"
                      "git commit -qam more\ngit log --oneline | wc -l\n")
    clone = place / "work" / "clone"
    reset = lambda: subprocess.run(["rm", "-rf", clone], check=True)
    passed = lambda r: (r.returncode, r.stdout.strip()) == (0, "2") and (clone / "file").exists()
    flags = [word for name, value in GIT.items() for word in ("--env", f"{name}={value}")]
    lesson = check_learned(place, tmp_path, ["/bin/sh", "work.sh"], passed, reset, flags)
    access = {grant["target"]: grant["access"] for grant in lesson["grants"]}
    assert access[str(place / "work")] == "rw" and access[str(origin / ".git")] == "ro", access


def test_gcc(place, tmp_path):
    for name in ("src", "include", "out"):
        (place / name).mkdir()
    (place / "include" / "part.h").write_text("int part(void);\n")
    (place / "src" / "part.c").write_text("int part(void) { return 42; }\n")
    (place / "src" / "main.c").write_text('#include "part.h"\nint main(void) { return part(); }\n')
    program = place / "out" / "program"
    command = ["gcc", "-Iinclude", "-o", "out/program", "src/main.c", "src/part.c"]

    def passed(result):
        return result.returncode == 0 and program.exists() and subprocess.run([program]).returncode == 42

    lesson = check_learned(place, tmp_path, command, passed, lambda: program.unlink(missing_ok=True))
    assert {"rw": 1, "ro": 3} == {kind: [g["access"] for g in lesson["grants"]].count(kind) for kind in ("rw", "ro")}, lesson["grants"]


def test_trials_do_not_touch_the_real_files(place, tmp_path):
    """The example may only be run once on the real thing: it appends, and refuses a second time."""
    (place / "log").write_text("")
    script = place / "once.sh"
    script.write_text("test -s log && exit 1\necho ran >> log\n")
    done, lesson = learn(place, "--", "/bin/sh", "once.sh")
    assert done.returncode == 0 and lesson["standing"] == "minimal" and lesson["trials"] >= 2, lesson
    assert (place / "log").read_text() == "ran\n"
    assert [grant["access"] for grant in lesson["grants"] if grant["target"] in (str(place), str(place / "log"))] == ["rw"]


def test_no_verify_runs_once(place):
    (place / "data").write_text("x")
    (place / "count").write_text("")
    done, lesson = learn(place, "--no-verify", "--", "/bin/sh", "-c", "echo x >> count; cat data")
    assert done.returncode == 0 and (lesson["standing"], lesson["trials"]) == ("unverified", 0)
    assert (place / "count").read_text() == "x\n"
    assert "Not verified" in lesson["toml"]


def test_defaults_are_enough(place):
    done = subprocess.run([BELLJAR, "learn", "--", "/bin/echo", "hello"], cwd=place, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0 and "no grant at all" in done.stderr and "mounts" not in done.stdout
    assert 'level = "kernel"' in done.stdout


def test_example_that_fails_teaches_nothing(place):
    done, lesson = learn(place, "--", "/bin/sh", "-c", "echo broken >&2; exit 3")
    assert done.returncode == 1 and lesson["standing"] == "audit_failed"
    assert "fails already" in done.stderr and "broken" in done.stderr


def test_secrets_are_not_granted(place):
    home = place / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("secret")
    done, lesson = learn(place, "--", "/bin/cat", home / ".ssh" / "id", env={**os.environ, "HOME": str(home)})
    assert done.returncode == 1 and lesson["standing"] == "fails"
    assert not any(".ssh" in grant["target"] for grant in lesson["grants"]) and "secrets" in lesson["withheld"][0]
    assert "NOT GRANTED" in lesson["toml"]


def test_directories_with_secrets_are_not_granted(place):
    home = place / "home"
    (home / ".config/gh").mkdir(parents=True)
    for name, command in ("made", f"echo x > {home}/.config/made"), ("listed", f"ls {home}/.config"):
        done, lesson = learn(place, "--", "/bin/sh", "-c", command, env={**os.environ, "HOME": str(home)})
        assert not any(grant["target"] == f"{home}/.config" for grant in lesson["grants"]), (name, lesson)
        assert any("secrets" in line for line in lesson["withheld"]), (name, lesson)


def test_hostile_names_stay_in_their_comment(place):
    name = place / "a\n[network]\nmode = 'host'\n#"
    name.write_text("x")
    done, lesson = learn(place, "--no-verify", "--", "/bin/cat", name)
    assert done.returncode == 0
    assert not any(line.startswith(("[network]", "mode")) for line in lesson["toml"].splitlines()), lesson["toml"]


def test_output_that_differs_is_not_compared(place):
    (place / "data").write_text("x")
    done, lesson = learn(place, "--", "/bin/sh", "-c", f"cat {place}/data && date +%N")
    assert done.returncode == 0 and lesson["standing"] == "minimal"
    assert any("differs" in note for note in lesson["notes"]) and len(lesson["grants"]) == 1


def test_input_is_the_same_for_each_run(place):
    done, lesson = learn(place, "--", "/bin/sh", "-c", "read word; test $word = open", stdin=None, input="open\n")
    assert done.returncode == 0 and lesson["standing"] == "minimal", lesson


def without_namespaces(place):
    data = place / "data.txt"
    data.write_text("42")
    done, lesson = learn(place, "--", "/bin/cat", data, form="landlock-only")
    assert done.returncode == 0 and lesson["standing"] == "minimal", (lesson, done.stderr)
    assert [grant["target"] for grant in lesson["grants"]] == [str(data)]
    done, lesson = learn(place, "--", "/bin/sh", "-c", "echo x > out", form="landlock-only")
    assert lesson["standing"] == "unverified" and any("real files" in note for note in lesson["notes"])


if not harness.IS_ROOT:  # That form is for users.
    test_without_namespaces = without_namespaces


def test_nothing_is_left_in_tmp(place, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # Nobody else's.
    before = set(tmp_path.iterdir())
    learn(place, "--", "/bin/sh", "-c", "echo x > out")
    assert set(tmp_path.iterdir()) == before
