"""`belljar run` as its user meets it: exit statuses, what is mounted and written, the result, the working directory."""

import json
import os
import stat
import subprocess

import pytest

import harness
from harness import belljar, inside, run_json

both = pytest.mark.parametrize("level", ["kernel", "process"])


# -- exit statuses --------------------------------------------------------------------------------------------------------

@both
@pytest.mark.parametrize("code", [0, 1, 3, 124, 125, 126, 127, 130, 255])
def test_own_exit_status(level, code):
    done = belljar("--level", level, "--", "/bin/sh", "-c", f"exit {code}")
    assert done.returncode == code
    assert done.stderr == "", "a command that ended by itself is not explained"
    result = run_json("--level", level, "--", "/bin/sh", "-c", f"exit {code}")
    assert (result.verdict, result["exit_code"], result["signal"], result["message"]) == ("exited", code, None, "")


@both
@pytest.mark.parametrize("number", [1, 2, 6, 9, 11, 13, 15, 24, 25, 31, 34])
def test_signal_status(level, number):
    """Signals that the command sends itself; those that stand for a limit too must not be taken for it."""
    result = run_json(*inside(level, "crash", number))
    assert result.status == 128 + number, result
    assert result["signal"] == number
    if number not in (24, 25, 31):
        assert result.verdict == "signaled"
    else:
        print(f"signal {number}: {result.verdict}")


@both
def test_not_found_and_not_executable(level, tmp_path):
    for argv, status in ((["/no/such/program"], 127), (["no-such-program-anywhere"], 127), (["/etc/passwd"], 126), (["/usr"], 126)):
        done = belljar("--level", level, "--", *argv)
        assert done.returncode == status, (argv, done.returncode, done.stderr)
        assert done.stderr.startswith("belljar:") and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("arguments", [
    ["--net", "full", "--", "/bin/true"],
    ["--wall", "soon", "--", "/bin/true"],
    ["--memory", "1X", "--", "/bin/true"],
    ["--ro", "/no/such/place", "--", "/bin/true"],
    ["--policy", "/no/such/policy.toml", "--", "/bin/true"],
    ["--profile", "no-such-profile", "--", "/bin/true"],
    ["--level", "container", "--", "/bin/true"],
    ["--net", "host", "--", "/bin/true"],
    ["--no-such-flag", "--", "/bin/true"],
    ["--"],
    [],
])
def test_refused_is_125_and_never_runs(arguments, shared):
    done = belljar(*arguments)
    assert done.returncode == 125, (done.returncode, done.stderr)
    assert done.stderr.strip() and done.stdout == ""


def test_refusal_as_json():
    done = belljar("--json", "--net", "full", "--", "/bin/true")
    assert done.returncode == 125
    result = json.loads(done.stdout)
    assert result["verdict"] == "refused" and result["exit_code"] is None and result["message"]


def test_level_process_refuses_read_only_mounts(shared):
    done = belljar("--level", "process", "--ro", str(shared), "--", "/bin/true")
    assert done.returncode == 125 and "process" in done.stderr


# -- the result -------------------------------------------------------------------------------------------------------------

def test_result_has_every_field():
    result = run_json("--", "/bin/true")
    assert list(result) == ["verdict", "exit_code", "signal", "stdout", "stdout_bytes", "stdout_dropped", "stderr", "stderr_bytes",
                            "stderr_dropped", "duration_ms", "usage", "denials", "receipt", "appeared", "background", "message",
                            "hint"]
    assert set(result["usage"]) == {"cpu_ms", "memory_peak_bytes", "processes_peak", "disk_bytes"}
    receipt = result["receipt"]
    assert (receipt["level"], receipt["backend"], receipt["form"]) == ("kernel", "native", "namespaces")
    for line in receipt["guards"]:
        assert set(line) == {"guard", "state", "by", "reason"}
        assert line["state"] in ("enforced", "partial", "absent", "off")
        assert line["state"] == "enforced" or line["reason"], f"{line['guard']} does not say why it is {line['state']}"


def test_receipt_is_true():
    """What the receipt says of namespaces, seccomp and no_new_privs, seen from inside."""
    result = run_json("--", "/bin/sh", "-c", "cat /proc/self/status; for n in user mnt pid net ipc uts cgroup; do readlink /proc/self/ns/$n; done")
    assert "Seccomp:\t2" in result["stdout"] and "NoNewPrivs:\t1" in result["stdout"]
    guards = {line["guard"]: line["state"] for line in result["receipt"]["guards"]}
    for name, file in (("user namespace", "user"), ("mount namespace", "mnt"), ("pid namespace", "pid"), ("network", "net"),
                       ("ipc namespace", "ipc"), ("uts namespace", "uts"), ("cgroup namespace", "cgroup")):
        assert guards[name] == "enforced"
        assert os.readlink(f"/proc/self/ns/{file}") not in result["stdout"], f"{name} is the host's"


# -- files --------------------------------------------------------------------------------------------------------------------

def test_read_only_mount(shared):
    (shared / "file").write_text("old")
    (shared / "sub").mkdir()
    script = ("cat /data/file; (echo new > /data/file) 2>/dev/null && echo WROTE; (: > /data/more) 2>/dev/null && echo MADE;"
              "rm -f /data/file 2>/dev/null && echo REMOVED; chmod 777 /data/file 2>/dev/null && echo CHMOD;"
              "mkdir /data/sub/x 2>/dev/null && echo MKDIR; touch /data/file 2>/dev/null && echo TOUCHED; true")
    result = run_json("--ro", f"{shared}:/data", "--", "/bin/sh", "-c", script)
    assert result["stdout"] == "old", result
    assert (shared / "file").read_text() == "old" and sorted(os.listdir(shared)) == ["file", "sub"]


def test_read_write_mount_is_usable_on_both_sides(shared):
    (shared / "from-host").write_text("hello")
    (shared / "from-host").chmod(0o600)
    script = ("cat from-host && echo && echo bye > from-guest && mkdir d && echo x > d/e && echo more >> from-host && chmod 640 from-guest"
              " && ln -s from-guest link && mv d moved && stat -c '%u %g' from-host from-guest")
    result = run_json("--rw", f"{shared}:/workspace", "--workdir", "/workspace", "--", "/bin/sh", "-c", script)
    assert result["exit_code"] == 0, result
    assert result["stdout"].startswith("hello")
    owners = set(result["stdout"].splitlines()[-2:])
    assert len(owners) == 1 and not owners & {"0 0"}, f"inside, both are the guest's: {owners}"
    assert (shared / "from-host").read_text() == "hellomore\n"
    for name in ("from-guest", "moved", "moved/e", "link"):
        status = os.lstat(shared / name)
        assert (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid()), f"{name} is not the caller's"
    assert stat.S_IMODE((shared / "from-guest").stat().st_mode) == 0o640
    (shared / "from-guest").write_text("again")


if harness.IS_ROOT:  # Only root can make files of another owner.
    def test_read_write_mount_of_another_owner(shared):
        os.chown(shared, 1234, 1234)
        result = run_json("--rw", f"{shared}:/workspace", "--", "/bin/sh", "-c", "echo x > /workspace/f && stat -c %u /workspace/f")
        assert result["exit_code"] == 0, result
        assert (shared / "f").stat().st_uid == 1234, "what the guest makes belongs to the owner of the directory"


def test_single_file_mounts(shared):
    file = shared / "one"
    file.write_text("1")
    result = run_json("--ro", f"{file}:/data/one", "--", "/bin/sh", "-c", "cat /data/one; ls /data; (echo 2 > /data/one) 2>/dev/null; true")
    assert result["stdout"] == "1one\n" and file.read_text() == "1"
    result = run_json("--rw", f"{file}:/data/one", "--", "/bin/sh", "-c", "echo 2 > /data/one")
    assert result["exit_code"] == 0 and file.read_text() == "2\n"


def test_setuid_bits_of_a_mount_are_dead(shared):
    result = run_json("--rw", f"{shared}:/workspace", "--", "/bin/sh", "-c",
                      "cp /bin/cat /workspace/cat; chmod 4755 /workspace/cat; mount 2>/dev/null | grep /workspace; grep ' /workspace ' /proc/self/mountinfo")
    assert "nosuid" in result["stdout"] and "nodev" in result["stdout"], result


def test_hide(shared):
    (shared / "keep").write_text("keep")
    (shared / "secret").write_text("SECRET")
    (shared / "secrets").mkdir()
    (shared / "secrets" / "key").write_text("SECRET")
    result = run_json("--ro", f"{shared}:/data", "--hide", "/data/secret", "--hide", "/data/secrets", "--", "/bin/sh", "-c",
                      "cat /data/keep; cat /data/secret /data/secrets/* 2>/dev/null; ls -A /data/secrets; true")
    assert result["stdout"] == "keep", result


def test_symlinks_in_a_writable_mount_do_not_redirect_targets(shared, tmp_path):
    """A guest leaves a link where the next run mounts something; the mount must not land behind the link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text("canary")
    data = tmp_path / "data"
    data.mkdir()
    (data / "from-data").write_text("x")
    planted = run_json("--rw", f"{shared}:/w", "--", "/bin/sh", "-c", "ln -s /etc /w/etc-link; ln -s ../../../../../../etc /w/up; ln -s /tmp /w/tmp-link")
    assert planted["exit_code"] == 0, planted
    for target in ("/w/etc-link", "/w/up", "/w/etc-link/deeper", "/w/tmp-link/deeper"):
        result = run_json("--rw", f"{shared}:/w", "--rw", f"{data}:{target}", "--", "/bin/sh", "-c", "cat /etc/passwd; ls /etc /tmp")
        if result.verdict == "exited":
            assert "from-data" not in result["stdout"], f"{target} was followed"
            assert "nobody" in result["stdout"]
        else:
            assert result.verdict in ("failed", "refused"), result
    assert (outside / "canary").read_text() == "canary"
    assert not os.path.exists("/etc/deeper") and not os.path.exists("/tmp/deeper")


def test_a_callers_umask_does_not_hide_the_root(shared):
    """Files of the root are made by init, whose umask is its caller's unless it is set."""
    result = subprocess.run([harness.BELLJAR, "run", "--", "sh", "-c", "cat /etc/passwd /etc/hosts > /dev/null && umask"],
                            umask=0o077, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert (result.returncode, result.stdout) == (0, "0022\n"), result.stderr


def test_ids_have_names(shared):
    """Files in archives are root's, and tar, shutil and packaging tools ask for the name of each owner that they meet."""
    code = ("import grp, os, pwd\n"
            "for uid in (0, os.getuid(), 65534): print(pwd.getpwuid(uid).pw_name, grp.getgrgid(uid).gr_name)")
    result = run_json("--", harness.PYTHON, "-c", code)
    assert result["stdout"] == "root root\nguest guest\nnobody nogroup\n", result


def test_workdir(shared):
    assert run_json("--", "/bin/pwd")["stdout"] == "/workspace\n"
    assert run_json("--workdir", "/tmp/here/there", "--", "/bin/pwd")["stdout"] == "/tmp/here/there\n"
    assert run_json("--rw", f"{shared}:/w", "--workdir", "/w", "--", "/bin/pwd")["stdout"] == "/w\n"
    assert run_json("--workdir", "/work/here", "--", "/bin/sh", "-c", "pwd; echo x > f; cat f")["stdout"] == "/work/here\nx\n"


def test_workdir_can_not_widen_what_is_writable(shared):
    (shared / "f").write_text("old")
    result = run_json("--ro", f"{shared}:/data", "--workdir", "/data", "--", "/bin/sh", "-c", "pwd; (echo new > f) 2>/dev/null; true")
    assert (shared / "f").read_text() == "old", result
    for workdir in ("/usr/lib", "/etc", "/proc/self", "/usr/local/new"):
        result = run_json("--workdir", workdir, "--", "/bin/sh", "-c", "pwd; (echo x > belljar-test-file) 2>/dev/null && echo WROTE")
        assert result.verdict in ("refused", "failed") or not os.path.exists(f"{workdir}/belljar-test-file"), result


def test_private_files_are_gone(shared):
    for place in ("/workspace", "/tmp", "/dev/shm", "."):
        made = run_json("--", "/bin/sh", "-c", f"echo x > {place}/belljar-private")
        assert made["exit_code"] == 0, made
        again = run_json("--", "/bin/sh", "-c", f"ls {place}")
        assert "belljar-private" not in again["stdout"]
        assert not os.path.exists(f"{place}/belljar-private")


def test_process_level_has_a_fresh_workdir():
    result = run_json("--level", "process", "--", "/bin/sh", "-c", "pwd; ls -A | wc -l; echo x > f; cat f")
    place, count, text = result["stdout"].split()
    assert count == "0" and text == "x" and not os.path.exists(place)


def test_interpreter_outside_usr(tmp_path):
    """A virtual environment's python works although it lies outside /usr."""
    tmp_path.chmod(0o755)
    venv = tmp_path / "venv"
    subprocess.run([harness.PYTHON, "-m", "venv", "--without-pip", str(venv)], check=True)
    result = run_json("--", str(venv / "bin/python"), "-c", "import sys; print(sys.prefix)")
    assert result["stdout"].strip() == str(venv), result
