"""What the tools of a writable mount's owner would execute later stays as it is, whatever a guest tries; and what it could only
make anew is told."""

import json
import os
import re
import shlex
import subprocess

import pytest

import harness
from harness import Escape, belljar, run_json

HOOK = "#!/bin/sh\necho planted\n"
# Each is tried in a copy of the project: a shell script that plants a hook, a setting or a start-up file.
ATTACKS = {
    "write": "echo planted > .git/hooks/pre-commit",
    "append": "echo planted >> .git/config",
    "make": "echo planted > .git/hooks/post-checkout",
    "remove": "rm -rf .git/hooks; mkdir .git/hooks; echo planted > .git/hooks/pre-commit",
    "rename-over": "echo planted > x; mv -f x .git/config",
    "move-parent": "mv .git old; mkdir -p .git/hooks; echo planted > .git/hooks/pre-commit",
    "move-hooks": "mv .git/hooks .git/old; mkdir .git/hooks; echo planted > .git/hooks/pre-commit",
    "exchange": "mkdir other; python3 -c 'import ctypes, os; libc = ctypes.CDLL(None); "
                "libc.renameat2(-100, b\".git\", -100, b\"other\", 2)'; mkdir -p .git/hooks; echo planted > .git/hooks/pre-commit",
    "link": "ln -f .bashrc hard; echo planted >> hard",
    "replace-by-link": "ln -sfn /workspace/x .bashrc; echo planted >> .bashrc",
    "mode": "chmod 777 .git/hooks .git/config .bashrc; echo planted >> .bashrc",
    "submodule": "echo planted > .git/modules/sub/hooks/pre-commit",
    "worktree": "rm .git/worktrees/wt/commondir; echo planted > .git/worktrees/wt/commondir",
    "move-worktree": "mv .git/worktrees/wt .git/old; mkdir .git/worktrees/wt; echo planted > .git/worktrees/wt/commondir",
    "mapped": "python3 -c 'import mmap; f = open(\".bashrc\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[:7] = b\"planted\"'",
}
PROTECTED = [".git/config", ".git/worktrees/wt/commondir", ".git/hooks/pre-commit", ".git/hooks/post-checkout", ".bashrc", ".git/modules/sub/hooks/pre-commit"]


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    for name in (".git/hooks/pre-commit", ".git/config", ".bashrc", ".git/modules/sub/config", ".git/modules/sub/hooks/x",
                 ".git/worktrees/wt/commondir", "main.c"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("mine, and long enough\n")
    return root


def planted(root):
    """Also a link, as the guest decides what it leads to."""
    return [name for name in PROTECTED if (root / name).is_symlink() or
            ((root / name).exists() and "planted" in (root / name).read_text())]


@pytest.mark.parametrize("name", ATTACKS)
def test_planting(project, name):
    result = run_json("--rw", f"{project}:/workspace", "--", "/bin/sh", "-c", ATTACKS[name])
    if planted(project):
        raise Escape(f"{name}: {planted(project)} {result['stderr']}")
    for kept in (".git/hooks/pre-commit", ".git/config", ".bashrc"):
        assert (project / kept).read_text() == "mine, and long enough\n", kept
    # The control: without the protection all of it works.
    run_json("--rw", f"{project}:/workspace", "--unprotect", "all", "--", "/bin/sh", "-c", ATTACKS[name])
    assert planted(project), name


@pytest.mark.parametrize("attack", ["mv sub old", "mv sub/deep sub/old", "rm -rf sub", "mv sub/deep/kept sub/deep/old"])
def test_a_mount_inside_a_writable_one_stays_where_it_is(tmp_path, attack):
    """Though all directories on the way to it are writable."""
    kept = tmp_path / "sub/deep/kept"
    kept.mkdir(parents=True)
    (kept / "file").write_text("mine")
    plant = f"{attack}; mkdir -p sub/deep/kept; echo planted > sub/deep/kept/file"
    belljar("--rw", f"{tmp_path}:/p", "--ro", f"{kept}:/p/sub/deep/kept", "--workdir", "/p", "--", "/bin/sh", "-c", plant)
    if not (kept / "file").exists() or (kept / "file").read_text() != "mine":
        raise Escape(attack)
    belljar("--rw", f"{tmp_path}:/p", "--workdir", "/p", "--", "/bin/sh", "-c", plant)
    assert (kept / "file").read_text() == "planted\n", "the control"


def test_the_rest_is_writable(project):
    done = belljar("--rw", f"{project}:/workspace", "--", "/bin/sh", "-c",
                   "echo more >> main.c && mkdir src && mv main.c src && echo x > .git/index && rm .git/index && cat .bashrc")
    assert done.returncode == 0 and done.stdout.startswith("mine"), done
    assert (project / "src/main.c").read_text().endswith("more\n")
    assert sorted(os.listdir(project)) == [".bashrc", ".git", "src"]


def test_what_appears_is_told(project):
    result = run_json("--rw", f"{project}:/workspace", "--", "/bin/sh", "-c", "echo planted > .envrc; mkdir .vscode; echo x > new.c")
    assert result["appeared"] == ["/workspace/.vscode", "/workspace/.envrc"]
    done = belljar("--rw", f"{project}:/workspace", "--", "/bin/sh", "-c", "echo x > .profile")
    assert "/workspace/.profile is new" in done.stderr
    # From now on they are there, and so protected.
    result = run_json("--rw", f"{project}:/workspace", "--", "/bin/sh", "-c", "echo more >> .envrc")
    assert result["appeared"] == [] and result["exit_code"] != 0 and (project / ".envrc").read_text() == "planted\n"


def test_another_common_directory_is_told(project):
    """Git takes config and hooks from where this file says; nothing is there to protect before it is made."""
    result = run_json("--rw", f"{project}:/workspace", "--", "/bin/sh", "-c", "echo /workspace/mine > .git/commondir")
    assert result["appeared"] == ["/workspace/.git/commondir"]


def test_the_receipt_and_the_plan_tell(project):
    result = run_json("--rw", f"{project}:/workspace", "--", "/bin/true")
    assert "/workspace/.git/hooks" in harness.guard(result, "protected files")["by"]
    result = run_json("--rw", f"{project}:/workspace", "--unprotect", "all", "--", "/bin/true")
    assert harness.guard(result, "protected files")["state"] == "off"
    plan = subprocess.run([harness.BELLJAR, "explain", "--rw", f"{project}:/workspace", "--", "true"], capture_output=True, text=True)
    assert f"mount {project}/.git/hooks at /workspace/.git/hooks, read-only" in plan.stdout


if not harness.IS_ROOT:  # Root has mounts in every form.
    def test_without_mounts_the_receipt_says_so(project):
        done = subprocess.run([harness.guest("forbid_userns"), harness.BELLJAR, "run", "--json", "--rw", project, "--", "/bin/true"],
                              capture_output=True, text=True)
        line = harness.guard(json.loads(done.stdout), "protected files")
        assert line["state"] == "absent" and line["reason"]


def test_a_trace_names_the_grant(project):
    result = run_json("--trace", "--rw", f"{project}:/workspace", "--", "/bin/sh", "-c", "echo x > .git/hooks/new; echo x > .bashrc")
    grants = {denial["target"]: denial["grant"] for denial in result["denials"] if denial["kind"] == "file"}
    assert grants[".git/hooks/new"] == "--unprotect .git/hooks" and grants[".bashrc"] == "--unprotect .bashrc", result["denials"]
    done = belljar("--rw", f"{project}:/workspace", "--unprotect", ".git/hooks", "--", "/bin/sh", "-c", "echo x > .git/hooks/new")
    assert done.returncode == 0 and (project / ".git/hooks/new").exists()


def test_links_are_refused_with_what_to_do(project):
    (project / ".zshrc").symlink_to("main.c")
    result = run_json("--rw", f"{project}:/workspace", "--", "/bin/true")
    assert result.verdict == "refused" and "--unprotect .zshrc" in result["message"]
    # What the hint says is enough, also for a directory that several names lie in.
    os.rename(project / ".git", project / "elsewhere")
    (project / ".git").symlink_to("elsewhere")
    result = run_json("--rw", f"{project}:/workspace", "--", "/bin/true")
    words = shlex.split(re.search(r"(--unprotect [^,]*),", result["message"])[1])
    assert belljar("--rw", f"{project}:/workspace", *words, "--", "/bin/true").returncode == 0, words
    (project / ".git").unlink()
    os.rename(project / "elsewhere", project / ".git")
    assert belljar("--rw", f"{project}:/workspace", "--unprotect", ".zshrc", "--", "/bin/true").returncode == 0


def test_git_works(project, tmp_path):
    root = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", root], check=True)
    script = ("git -c user.name=a -c user.email=b commit -q --allow-empty -m one && git checkout -q -b other && git log --oneline | wc -l; "
              "git config core.pager planted")
    done = belljar("--rw", f"{root}:/workspace", "--", "/bin/sh", "-c", script)
    assert done.stdout.strip() == "1" and done.returncode != 0, done
    assert "planted" not in (root / ".git/config").read_text()


def test_mistakes_are_told(tmp_path):
    for words, why in ((["--protect", "/etc"], "relative path"), (["--protect", "a/../b"], "relative path"), (["--unprotect", "nothing"], "not protected")):
        result = run_json(*words, "--rw", tmp_path, "--", "/bin/true")
        assert result.verdict == "refused" and why in result["message"], result
