"""What the tools of a writable mount's owner would execute later stays as it is, whatever a guest tries; and what it could only
make anew is told."""

import json
import os
import re
import shlex
import shutil
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
    assert result["appeared"] == ["/workspace/.envrc", "/workspace/.vscode"]
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


@pytest.mark.parametrize("plant, told", [
    ("mkdir -p .git/modules/new/hooks; echo planted > .git/modules/new/config",
     ["/workspace/.git/modules/new/config", "/workspace/.git/modules/new/hooks"]),
    ("mkdir -p .git/worktrees/new; echo planted > .git/worktrees/new/commondir", ["/workspace/.git/worktrees/new/commondir"]),
])
def test_what_a_pattern_of_the_list_names_is_told_when_it_appears(project, plant, told):
    assert run_json("--rw", f"{project}:/workspace", "--", "/bin/sh", "-c", plant)["appeared"] == told


GIT = ["git", "-c", "user.name=a", "-c", "user.email=b", "-c", "protocol.file.allow=always"]


def git(directory, *words):
    return subprocess.run([*GIT, *words], cwd=directory, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def repository(path, *submodules):
    git(path.parent, "init", "-q", path.name)
    (path / "file").write_text("x\n")
    for other, name in submodules:
        git(path, "submodule", "--quiet", "add", str(other), name)
    git(path, "add", "-A")
    done = git(path, "commit", "-qm", "first")
    assert done.returncode == 0, done
    return path


def layouts(tmp_path):
    """Ways to lay out a repository, each with where its owner calls git, and what a guest writes for that git to obey."""
    sub = repository(tmp_path / "sub")
    own = "[core]\\n\\tfsmonitor = \"touch OWNED; false\"\\n"

    def config(name):
        return f"printf '{own}'\"$MORE\" >> {name}"
    def made(name):
        return repository(tmp_path / name)
    deep = repository(tmp_path / "deep", (sub, "a/b/c/d/e"))
    yield "a submodule of many parts", deep, deep, config(".git/modules/a/b/c/d/e/config")
    linked = repository(tmp_path / "linked", (sub, "lib"))
    git(linked, "worktree", "add", "-q", "wt")
    git(linked / "wt", "submodule", "--quiet", "update", "--init")
    yield "a submodule of a linked worktree", linked, linked / "wt", config(".git/worktrees/wt/modules/lib/config")
    yield "the common directory of such a one", linked, linked / "wt", (
        f"git init -q --bare evil; {config('evil/config')}; "
        "printf %s ../../../../../evil > .git/worktrees/wt/modules/lib/commondir")
    yield "a linked worktree's name of its repository", linked, linked / "wt", (
        f"cp -r .git evil; {config('evil/config')}; echo gitdir: ../evil > wt/.git")
    moved = repository(tmp_path / "moved", (sub, "lib"))
    yield "a submodule's name of its repository", moved, moved, (
        f"cp -r .git/modules/lib evil; git config -f evil/config core.worktree ../lib; {config('evil/config')}; "
        "echo gitdir: ../evil > lib/.git")
    fresh = made("fresh")
    yield "a repository put into the index", fresh, fresh, (
        "git init -q new; cd new; git commit -q --allow-empty -m x; cd ..; git add new 2>/dev/null; "
        f"{config('new/.git/config')}")
    bare = tmp_path / "bare"
    git(tmp_path, "init", "-q", "bare")
    os.rename(bare / ".git", tmp_path / "repo")
    os.rename(tmp_path / "repo", bare / ".repo")
    (bare / ".git").write_text("gitdir: ./.repo\n")
    yield "where a .git file leads", bare, bare, config(".repo/config")
    empty = tmp_path / "empty"
    empty.mkdir()
    yield "a directory laid out as a repository", empty, empty, (
        "mkdir -p objects refs; echo ref: refs/heads/m > HEAD; MORE='\\trepositoryformatversion = 0\\n\\tworktree = .\\n\\tbare = false\\n'; " + config("config"))
    includes = made("includes")
    (includes / "shared").write_text("")
    git(includes, "config", "include.path", "../shared")
    yield "an included file", includes, includes, config("shared")
    hooks = made("hooks")
    (hooks / "tools").mkdir()
    (hooks / "tools/post-index-change").write_text("#!/bin/sh\n")
    (hooks / "tools/post-index-change").chmod(0o755)
    git(hooks, "config", "core.hooksPath", "tools")
    yield "where core.hooksPath leads", hooks, hooks, "echo touch OWNED >> tools/post-index-change; touch file"


def test_layouts_of_repositories(tmp_path):
    """Whatever git on the host would obey stays as it is, or is told; the control is what git then does."""
    identity = ["--env", "GIT_AUTHOR_NAME=a", "--env", "GIT_AUTHOR_EMAIL=b", "--env", "GIT_COMMITTER_NAME=a", "--env", "GIT_COMMITTER_EMAIL=b"]

    def owned():
        found = [str(path) for path in tmp_path.rglob("OWNED")]
        for path in found:
            os.unlink(path)
        return found
    tried = 0
    for name, mount, called, attack in layouts(tmp_path):
        kept = tmp_path / "kept"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(mount, kept, symlinks=True)
        words = ["--rw", f"{mount}:{mount}", "--workdir", str(mount), *identity]
        result = run_json(*words, "--", "/bin/sh", "-c", attack)
        git(called, "status")
        if owned() and not result["appeared"]:
            raise Escape(f"{name}: git obeyed, and nothing was told: {result}")
        shutil.rmtree(mount)
        shutil.copytree(kept, mount, symlinks=True)
        run_json(*words, "--unprotect", "all", "--", "/bin/sh", "-c", attack)
        git(called, "status")
        assert owned(), f"{name}: the control"
        shutil.rmtree(mount)
        shutil.copytree(kept, mount, symlinks=True)
        tried += 1
    assert tried == 10


def test_a_repository_that_two_mounts_show(tmp_path):
    root = repository(tmp_path / "p")
    write = "for d in /b /a/p; do echo planted >> $d/.git/config; done"
    words = ["--rw", f"{tmp_path}:/a", "--rw", f"{root}:/b", "--", "/bin/sh", "-c", write]
    run_json(*words)
    if "planted" in (root / ".git/config").read_text():
        raise Escape("by the outer mount")
    run_json("--unprotect", "all", *words)
    assert (root / ".git/config").read_text().count("planted") == 2, "the control"


def test_any_depth(tmp_path):
    for name in (".env", "a/.env", "a/b/.env"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine\n")
    write = "for f in .env a/.env a/b/.env; do echo planted > $f; done; mkdir c; echo x > c/.env"
    result = run_json("--rw", f"{tmp_path}:/w", "--workdir", "/w", "--protect", "**/.env", "--", "/bin/sh", "-c", write)
    assert {(tmp_path / name).read_text() for name in (".env", "a/.env", "a/b/.env")} == {"mine\n"}, result
    assert result["appeared"] == ["/w/c/.env"]


def test_hooks_among_what_has_to_be_written_are_refused(tmp_path):
    root = repository(tmp_path / "r")
    git(root, "config", "core.hooksPath", ".")
    result = run_json("--rw", root, "--", "/bin/true")
    assert result.verdict == "refused" and "--unprotect .git/hooks" in result["message"], result
    assert run_json("--rw", root, "--unprotect", ".git/hooks", "--", "/bin/true").verdict == "exited"


def test_a_repository_by_a_file_is_told(tmp_path):
    """Where no .git was a file of that name brings another repository, with its configuration and hooks."""
    result = run_json("--rw", f"{tmp_path}:/workspace", "--", "/bin/sh", "-c", "mkdir own; echo gitdir: own > .git")
    assert result["appeared"] == ["/workspace/.git"]


@pytest.mark.parametrize("name", [".envrc", ".git/hooks/pre-commit"])
def test_another_name_of_a_protected_file_is_refused(project, name):
    (project / ".envrc").write_text("mine\n")
    os.link(project / name, project / "cache.bin")
    write = ["--", "/bin/sh", "-c", "echo planted >> cache.bin"]
    result = run_json("--rw", f"{project}:/workspace", *write)
    assert result.verdict == "refused" and "hard link" in result["message"] and "--unprotect" in result["message"]
    run_json("--rw", f"{project}:/workspace", "--unprotect", "all", *write)
    assert (project / name).read_text().endswith("planted\n"), "the control"


# The host puts another file in the place of one that has a cover, as git and editors do, or moves it: the kernel takes the
# cover away, or along.
WRITE_IT = "while ! echo planted >> /workspace/.git/config; do :; done 2>/dev/null"
READ_IT = "until grep -q . /data/secret; do :; done 2>/dev/null; cat /data/secret"
READ_ONLY = "while ! echo planted >> /workspace/main.c; do :; done 2>/dev/null"


def replaced(target):
    fresh = target.with_name("fresh")
    fresh.write_text("new\n")
    os.rename(fresh, target)


def moved(target):
    os.rename(target, target.with_name("backup"))


@pytest.mark.parametrize("end", ["exec sleep 600", "exit 0"])
@pytest.mark.parametrize("change", [replaced, moved, os.unlink])
@pytest.mark.parametrize("kind", ["protected", "hidden", "inner"])
def test_a_cover_that_the_host_takes_away_ends_the_run(project, tmp_path, kind, change, end):
    secret = tmp_path / "data/secret"
    secret.parent.mkdir()
    secret.write_text("old secret\n")
    inside, target, flags, script = {
        "protected": ("/workspace/.git/config", project / ".git/config", ["--rw", f"{project}:/workspace"], WRITE_IT),
        "hidden": ("/data/secret", secret, ["--ro", f"{secret.parent}:/data", "--hide", "/data/secret"], READ_IT),
        "inner": ("/workspace/main.c", project / "main.c",
                  ["--rw", f"{project}:/workspace", "--ro", f"{project}/main.c:/workspace/main.c"], READ_ONLY),
    }[kind]
    told = tmp_path / "told"
    told.mkdir()
    run = subprocess.Popen([harness.BELLJAR, "run", "--json", *flags, "--rw", f"{told}:/told", "--", "/bin/sh", "-c",
                            f"echo x > /told/runs; {script}; {end}"], stdout=subprocess.PIPE, text=True)
    assert harness.wait_until(lambda: (told / "runs").exists() or run.poll() is not None) and run.poll() is None
    change(target)
    if kind == "hidden" and not target.exists():
        target.write_text("new secret\n")  # Until then nothing is in sight.
    result = json.loads(run.communicate(timeout=harness.PATIENCE)[0])
    assert result["verdict"] == "failed" and "takes its cover away" in result["message"], result
    assert result["message"].startswith(inside)
    if kind == "protected" and change is replaced:
        assert result["appeared"] == [inside], "it may have been written meanwhile"


def test_other_changes_on_the_host_end_nothing(project):
    script = "echo ready; read -r line; cat main.c"
    run = subprocess.Popen([harness.BELLJAR, "run", "--rw", f"{project}:/workspace", "--", "/bin/sh", "-c", script],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    (project / "fresh").write_text("new\n")
    os.rename(project / "fresh", project / "main.c")
    (project / ".git/index").write_text("x")
    assert run.communicate("go\n", timeout=harness.PATIENCE)[0] == "new\n" and run.returncode == 0
