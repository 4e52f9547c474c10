"""Ways to the host's files by links, mounts and hidden paths: each once worked.
"""

import os
import pathlib
import subprocess

import pytest

import harness
from forms import NOT_RUN, contents, mistake
from harness import belljar


def plant(project, target, name="a"):
    """A guest leaves a symlink in a directory that it may write."""
    done = belljar("--rw", f"{project}:/workspace", "--", "/bin/ln", "-s", target, f"/workspace/{name}")
    assert done.returncode == 0 and os.readlink(project / name) == str(target), done


@pytest.mark.parametrize("target", ["a", "a/new", "a/new/c", "a/sub/new"])
@pytest.mark.parametrize("source", ["data", "data/file"])
def test_planted_link_does_not_move_a_mount_point(target, source, shared, project, data, victim):
    """Mount points are made where the caller said, never where a guest of an earlier run has pointed."""
    plant(project, victim)
    before = contents(shared)
    done = belljar("--rw", f"{project}:/workspace", "--ro", f"{shared / source}:/workspace/{target}", "--", "/bin/cat",
                   f"/workspace/{target}", "/workspace/a/file")
    mistake(done, f"/workspace/{target}")
    assert contents(shared) == before, "nothing is made on the host"


@pytest.mark.parametrize("access", ["--ro", "--rw"])
@pytest.mark.parametrize("beneath", ["", "/sub", "/file"])
@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
def test_planted_link_is_no_source(access, beneath, relative, project, victim):
    plant(project, pathlib.Path("../victim") if relative else victim)
    done = belljar(access, f"{project}/a{beneath}:/data", "--", "/bin/sh", "-c", "ls /data; cat /data /data/file")
    mistake(done, f"{project}/a", "victim")
    assert "SECRET" not in done.stdout


def test_source_without_links(victim):
    """The control of the tests above."""
    done = belljar("--ro", f"{victim}/sub:/data", "--", "/bin/cat", "/data/file")
    assert done.stdout == "SECRET", done


def test_mount_beneath_a_mount(project, data):
    mounts = ["--rw", f"{project}:/workspace", "--ro", f"{data}:/workspace/x", "--ro", f"{data}/file:/workspace/y"]
    script = ["--", "/bin/sh", "-c", "cat x/file y; echo new > made; echo new > x/made"]
    mistake(belljar(*mounts, *script), "/workspace/x")
    assert contents(project) == [] and contents(data) == ["file"], "nothing is made on the host"
    (project / "x").mkdir()
    (project / "y").touch()
    done = belljar(*mounts, *script)
    assert done.stdout == "DATADATA" and "Read-only" in done.stderr, done
    assert contents(project) == ["made", "x", "y"] and contents(data) == ["file"]


def test_hide_beneath_a_writable_mount_is_refused(victim):
    """A guest could rename what holds the hidden path and find it under another name."""
    for hidden in ("/data/sub", "/data/sub/file", "/data/not-there"):
        mistake(belljar("--rw", f"{victim}:/data", "--hide", hidden, "--", "/bin/true"), hidden, "/data")


def test_hide_by_pattern(tmp_path):
    """What the pattern names is empty wherever it is, and behind links that it names; its neighbours are not."""
    data = tmp_path / "data"
    for name in ("key.pem", "a/key.pem", "a/b/key.pem", "a/key.pub", "a/other"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("secret\n")
    (data / "link.pem").symlink_to("a/other")
    look = ["--ro", f"{data}:/data", "--", "/bin/sh", "-c", "cd /data; cat key.pem a/key.pem a/b/key.pem link.pem a/key.pub"]
    assert belljar(*look).stdout == "secret\n" * 5, "the control"
    assert belljar("--hide", "/data/**/*.pem", *look).stdout == "secret\n"
    assert belljar("--hide", "/data/a/*.pem", *look).stdout == "secret\n" * 4
    mistake(belljar("--rw", f"{data}:/data", "--hide", "/data/**/a/*.pem", "--", "/bin/true"), "/data/a/key.pem", "writable")


def test_hide_beneath_a_read_only_mount(victim):
    done = belljar("--ro", f"{victim}:/data", "--hide", "/data/sub", "--hide", "/data/file", "--", "/bin/sh", "-c",
                   "ls -A /data/sub; cat /data/file /data/sub/file; mv /data/sub /data/other; cat /data/other/file; echo end")
    assert done.stdout == "end\n", done


def test_hidden_directory_shows_nothing_of_another_mount(data, victim):
    """Whatever the guest mounts over the sandbox's own directories, what covers hidden paths is empty."""
    for target in ("/sys", "/etc", "/opt"):
        done = belljar("--ro", f"{data}:{target}", "--ro", f"{victim}:/data", "--hide", "/data/sub", "--", "/bin/sh", "-c",
                       f"ls -A /data/sub; cat /data/sub/file; cat {target}/file")
        assert done.stdout == "DATA" or done.returncode == NOT_RUN, done


@pytest.mark.parametrize("access", ["--ro", "--rw"])
@pytest.mark.parametrize("source", ["/proc", "/proc/self/root", "/proc/self/cwd", "/proc/{pid}", "/proc/{pid}/root", "/sys", "/dev"])
def test_filesystems_of_the_kernel_are_no_sources(access, source, victim):
    """Refused, or nothing of the host's processes, files and devices comes in by them, and no setting can be written."""
    word = harness.token()
    host = subprocess.Popen(["/bin/sh", "-c", "read end", word], stdin=subprocess.PIPE, cwd=victim)
    script = f"""
cat /p/file /p{victim}/file /p/root{victim}/file /p/cwd/file
for f in /p/[0-9]*/cmdline /p/cmdline; do tr '\\0' '\\n' < $f; done
find /p -writable -type f
for f in null zero full tty kmsg random; do (exec 3< /p/$f) && echo SECRET $f; done"""
    done = belljar(access, source.format(pid=host.pid) + ":/p", "--", "/bin/sh", "-c", script, cwd=victim)
    assert host.poll() is None
    host.communicate()
    assert word not in done.stdout and "SECRET" not in done.stdout and "/p" not in done.stdout, done
    if done.returncode == NOT_RUN:
        mistake(done, source.format(pid=host.pid))


def test_the_whole_host_comes_without_filesystems_of_the_kernel():
    """A mount brings what is mounted below it; of the host's root that is what none of its parts may be mounted as."""
    assert os.listdir("/sys") and os.listdir("/dev") and os.listdir("/proc"), "there is something to see"
    done = belljar("--ro", "/:/host", "--", harness.PYTHON, "-c",
                   "import os\n"
                   "print(sorted(os.listdir('/host/usr')) == sorted(os.listdir('/usr')))\n"
                   "for name in ('proc', 'sys', 'dev'):\n"
                   "  for path in ('/host/' + name, '/host/host/' + name):\n"
                   "    try: print(path, os.listdir(path))\n"
                   "    except OSError as error: print(name, type(error).__name__)\n")
    names = [f"{name} {error}" for name in ("proc", "sys", "dev") for error in ("PermissionError", "FileNotFoundError")]
    assert done.stdout.splitlines() == ["True", *names], done


SYSTEM = """
mount -t tmpfs none "$1" && cd "$1" && mkdir -p proc etc "a b/sys" keep/data keep/proc .git/hooks .git/proc tools/bin tools/lib/rustlib tools/proc &&
echo plain > etc/file && cp /bin/cat tools/bin && for at in proc keep/proc .git/proc tools/proc; do mount --rbind /proc $at || exit; done &&
mount --rbind /sys "a b/sys" && mount -t tmpfs none /usr/src && mkdir /usr/src/proc && mount --rbind /proc /usr/src/proc && shift && exec "$@"
"""


def test_root_of_a_user_namespace_is_a_user():
    """As in a rootless container: it has every capability, but no ids for guests."""
    done = subprocess.run(["unshare", "--user", "--map-root-user", harness.BELLJAR, "run", "--", "/bin/sh", "-c", "id -u; cat /etc/shadow"],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=harness.PATIENCE)
    assert done.stdout == "1000\n" and "No such file" in done.stderr, done


@pytest.mark.parametrize("access", ["--ro", "--rw"])
def test_no_kernel_filesystem_comes_with_a_directory(shared, access):
    """Another system's tree with the host's /proc mounted in it, as whoever works in a chroot has it."""
    unshare = ["unshare", "--mount"] if harness.IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]

    def with_system(*command):
        return subprocess.run([*unshare, "sh", "-c", SYSTEM, "sh", shared, *map(str, command)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=2 * harness.PATIENCE)

    kernel = [f"{shared}/{at}" for at in ("proc/version", "keep/proc/version", ".git/proc/version", "a b/sys/kernel/uevent_seqnum")]
    kernel.append("/usr/src/proc/version")
    control = with_system("/bin/cat", f"{shared}/etc/file", *kernel)
    assert control.stdout.startswith("plain\nLinux version") and control.returncode == 0, control
    # A mount below it, and what is protected in it, are mounted again.
    for more in [], ["--ro", shared / "keep/data"]:
        done = with_system(harness.BELLJAR, "run", access, shared, *more, "--", "/bin/cat", f"{shared}/etc/file", *kernel)
        assert done.stdout == "plain\n" and done.stderr.count("Permission denied") == len(kernel), done
    done = with_system(harness.BELLJAR, "run", "--", f"{shared}/tools/bin/cat", f"{shared}/tools/proc/version")
    assert done.stdout == "" and "Permission denied" in done.stderr, done
    for path in "proc", "proc/sys", "a b/sys/kernel":
        done = with_system(harness.BELLJAR, "run", access, shared / path, "--", "/bin/true")
        mistake(done, "can be mounted")
