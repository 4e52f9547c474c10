"""THREATS A and C: who the guest is, what it holds, what of its caller it can see.

A marker in belljar's environment, arguments, inherited descriptors and memory is searched for from inside.
"""

import ctypes
import os
import re
import socket
import subprocess

import pytest

import harness
from harness import PYTHON, belljar, run_json

both = pytest.mark.parametrize("level", ["kernel", "process"])


def inside_status(level="kernel", *arguments):
    text = run_json("--level", level, *arguments, "--", "/bin/cat", "/proc/self/status")["stdout"]
    return dict(re.findall(r"^(\w+):[ \t]*(.*)$", text, re.M))


# -- ids, groups, capabilities ---------------------------------------------------------------------------------------------

def test_ids_and_groups():
    status = inside_status()
    uids, gids = set(status["Uid"].split()), set(status["Gid"].split())
    assert len(uids) == len(gids) == 1 and uids != {"0"} and gids != {"0"}
    assert status["Groups"].strip() in ("", *gids, "65534"), "no group of the caller"
    assert run_json("--", "/usr/bin/id", "-un")["stdout"].strip() not in ("root", "")


def test_host_uid_is_not_root(shared):
    """Seen from the host, the guest is neither root nor, when root calls, any user that exists."""
    process = subprocess.Popen([harness.BELLJAR, "run", "--", "/bin/sh", "-c", "echo ready; sleep 600; :", word := harness.token()],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    process.stdout.readline()
    guests = [pid for pid in harness.processes_with(word) if pid != process.pid]
    owners = {os.stat(f"/proc/{pid}/task").st_uid for pid in guests}
    status = [open(f"/proc/{pid}/status", encoding="utf-8").read() for pid in guests]
    process.terminate()
    process.wait()
    process.stdout.close()
    assert guests and all(not re.search(r"^Uid:.*\b0\b", text, re.M) for text in status)
    if harness.IS_ROOT:
        assert all(uid >= 100_000 for uid in owners if uid != 0), owners
        assert all(re.search(r"^Groups:\s*$", text, re.M) for text in status), "leftover groups"


def test_capabilities():
    status = inside_status()
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, f"{name} is {status[name]}"
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    if harness.IS_ROOT:
        control = open("/proc/self/status", encoding="utf-8").read()
        assert not re.search(r"CapEff:\s*0+$", control, re.M), "the control must have capabilities"


@both
def test_no_new_privileges(level):
    assert inside_status(level)["NoNewPrivs"] == "1"


def test_setuid_programs_gain_nothing(tmp_path):
    """Twice: the mount is nosuid, and no_new_privs holds. Shown on a program that root has made setuid, where root tests."""
    mount = run_json("--", "/bin/grep", " /usr ", "/proc/self/mountinfo")["stdout"]
    assert "nosuid" in mount
    if harness.IS_ROOT:
        place = tmp_path / "bin"
        tmp_path.chmod(0o755)
        place.mkdir(mode=0o755)
        subprocess.run(["cp", "/usr/bin/id", str(place / "id")], check=True)
        os.chmod(place / "id", 0o4755)
        control = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(place / "id"), "-u"],
                                 capture_output=True, text=True).stdout
        assert control == "0\n", "outside, the setuid bit must work"
        result = run_json("--ro", f"{place}:/setuid", "--", "/setuid/id", "-u")
        assert result["stdout"].strip() not in ("0", ""), result


# -- descriptors -----------------------------------------------------------------------------------------------------------

@both
@pytest.mark.parametrize("json", [[], ["--json"]], ids=["streamed", "json"])
def test_only_three_descriptors(level, json, shared):
    (shared / "secret").write_text("SECRET")
    secret = os.open(shared / "secret", os.O_RDONLY)
    directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    pair = socket.socketpair()
    inherited = [secret, directory, pair[0].fileno()]
    for fd in inherited:
        os.set_inheritable(fd, True)
    script = "for f in /proc/self/fd/*; do echo ${f##*/}; done"
    control = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, pass_fds=inherited).stdout.split()
    assert {str(fd) for fd in inherited} <= set(control), "the control must inherit them"
    # 3 is the shell's own, opened to list the directory.
    done = belljar(*json, "--level", level, "--", "/bin/sh", "-c", script, pass_fds=inherited)
    text = done.stdout if not json else __import__("json").loads(done.stdout)["stdout"]
    assert set(text.split()) <= {"0", "1", "2", "3"}, text
    code = "import os\nfor fd in range(3, 1024):\n    try: os.fstat(fd); print('open', fd)\n    except OSError: pass"
    assert run_json("--level", level, "--", PYTHON, "-c", code, pass_fds=inherited)["stdout"] == ""
    os.close(secret)
    os.close(directory)
    pair[0].close()
    pair[1].close()


# -- environment and secrets -----------------------------------------------------------------------------------------------

def test_environment_is_fixed(monkeypatch):
    """PATH, HOME and LANG, with values that are the same for every caller, and what was asked for."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
    monkeypatch.setenv("HOME", "/home/of-the-caller")
    monkeypatch.setenv("LANG", "xx_CALLER")
    own = {"HOME=/tmp/home", "LANG=C.UTF-8"}
    lines = set(run_json("--", "/usr/bin/env")["stdout"].splitlines())
    assert {line for line in lines if not line.startswith("PATH=")} == own, lines
    result = run_json("--env", "A=1", "--pass-env", "AWS_SECRET_ACCESS_KEY", "--pass-env", "NOT_SET_ANYWHERE", "--", "/usr/bin/env")
    lines = {line for line in result["stdout"].splitlines() if not line.startswith("PATH=")}
    assert lines == own | {"A=1", "AWS_SECRET_ACCESS_KEY=SECRET"}


def test_process_level_environment(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
    result = run_json("--level", "process", "--", "/usr/bin/env")
    assert "SECRET" not in result["stdout"]


SEARCH = r"""
import os, sys, glob
marker = (sys.stdin.readline().strip()).encode()[::-1]
def look(path):
    try:
        with open(path, 'rb') as f:
            data = f.read(1 << 22)
        if marker in data: print('found in', path)
    except OSError: pass
for pid in [p for p in os.listdir('/proc') if p.isdigit()] if len(sys.argv) == 1 else [str(os.getppid())]:
    if int(pid) == os.getpid(): continue
    for name in ('environ', 'cmdline', 'comm', 'maps', 'status', 'stat', 'mountinfo', 'cgroup', 'auxv', 'limits'):
        look(f'/proc/{pid}/{name}')
    try:
        regions = [l.split()[0].split('-') for l in open(f'/proc/{pid}/maps')]
        mem = open(f'/proc/{pid}/mem', 'rb', 0)
        for a, b in regions:
            try:
                mem.seek(int(a, 16))
                if marker in mem.read(int(b, 16) - int(a, 16)): print('found in memory of', pid)
            except (OSError, ValueError): pass
    except OSError: pass
    for name in ('root', 'cwd', 'exe'):
        try: print('link', pid, name, os.readlink(f'/proc/{pid}/{name}'))
        except OSError: pass
    try: print('descriptors', pid, os.listdir(f'/proc/{pid}/fd'))
    except OSError: pass
for path in ('/proc/cmdline', '/proc/self/mountinfo', '/proc/self/cgroup', '/proc/mounts', '/etc/hosts', '/etc/passwd', '/proc/sys/kernel/hostname'):
    look(path)
if marker in str(os.environb).encode(): print('found in environment')
print('searched')
"""


def test_nothing_of_the_caller_is_visible(shared, monkeypatch):
    """The marker comes reversed on standard input, so that the search does not find itself."""
    marker = "MARKER" + os.urandom(8).hex()
    monkeypatch.setenv("CALLER_SECRET", marker)
    place = shared / f"dir-{marker}"
    place.mkdir()
    # In an argument of belljar that the guest has no use for: a variable's name, the source of a mount, the caller's cwd.
    result = run_json("--pass-env", f"NAME_{marker}", "--", PYTHON, "-c", SEARCH, input=marker[::-1] + "\n", cwd=place)
    assert result["stdout"].endswith("searched\n"), result
    assert result["stdout"] == "searched\n", "visible: " + result["stdout"]
    control = subprocess.run(["/bin/sh", "-c", '"$@"; :', "sh", PYTHON, "-c", SEARCH, "parent"], input=marker[::-1] + "\n", capture_output=True, text=True, cwd=place,
                             env={**os.environ, "CALLER_SECRET": marker}).stdout
    assert "found in" in control, "outside, the marker must be found"


def test_pid_1_is_closed():
    code = """
import os
for name in ('environ', 'mem', 'maps', 'fd', 'root', 'cwd', 'exe', 'ns/net', 'ns/user', 'syscall', 'stack'):
    path = '/proc/1/' + name
    try:
        if name in ('root', 'cwd', 'exe') or name.startswith('ns'): data = os.readlink(path)
        elif name == 'fd': data = os.listdir(path)
        else: data = open(path, 'rb').read(1)
        if data: print('readable', name, data)
    except OSError: pass
try: print(open('/proc/1/cmdline').read())
except OSError: pass
"""
    assert run_json("--", PYTHON, "-c", code)["stdout"].strip("\0\n") == ""


def test_pid_1_survives_signals():
    # Orphans of before and after: only a live init reaps them, and it has had its signals by then.
    result = run_json("--wall", "100s", "--", "/bin/sh", "-c", "orphan() { (/bin/true & echo $!); }; first=$(orphan)\n"
                      "for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done\n"
                      "for pid in $first $(orphan); do while [ -e /proc/$pid ]; do :; done; done; echo alive")
    assert result.verdict == "exited" and result["stdout"] == "alive\n", result


def test_host_names():
    result = run_json("--", "/bin/sh", "-c", "uname -n; cat /etc/hostname")
    assert result["stdout"] == "belljar\nbelljar\n"


def test_control_groups_are_not_told():
    """Inside the cgroup namespace the guest's own group is the root; a path would tell names and pids of the host."""
    result = run_json("--", "/bin/cat", "/proc/self/cgroup")
    assert all(line.endswith(":/") for line in result["stdout"].splitlines()), result["stdout"]


# -- the host's processes, sockets, files ------------------------------------------------------------------------------------

def test_processes_of_the_host_are_invisible():
    result = run_json("--", PYTHON, "-c", "import os; print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))")
    assert result["stdout"] in ("[2]\n", "[1, 2]\n"), result["stdout"]


def test_landlock_scope_holds_abstract_sockets_of_another_namespace(tmp_path):
    """Also between two sandboxes: neither the name nor the pid of one means anything in the other."""
    listener = socket.socket(socket.AF_UNIX)
    name = "belljar-" + os.urandom(6).hex()
    listener.bind("\0" + name)
    listener.listen()
    code = f"import socket\ns = socket.socket(socket.AF_UNIX)\ntry: s.connect('\\0{name}'); print('connected')\nexcept OSError as e: print('refused', e.errno)"
    assert subprocess.run([PYTHON, "-c", code], capture_output=True, text=True).stdout == "connected\n"
    assert run_json("--", PYTHON, "-c", code)["stdout"].startswith("refused")
    listener.close()


def test_path_socket_in_a_read_only_mount(shared):
    """A socket in a mounted directory is a door that the caller has opened by mounting it; without a mount there is none."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(shared / "s"))
    os.chmod(shared / "s", 0o777)
    listener.listen()
    code = f"import socket\ns = socket.socket(socket.AF_UNIX)\ntry: s.connect('{shared}/s'); print('connected')\nexcept OSError as e: print('refused', e.errno)"
    assert subprocess.run([PYTHON, "-c", code], capture_output=True, text=True).stdout == "connected\n"
    assert run_json("--", PYTHON, "-c", code)["stdout"] == "refused 2\n"
    listener.close()


@both
def test_network_is_cut(level):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    code = f"""
import socket
for family, where in ((socket.AF_INET, ('127.0.0.1', {listener.getsockname()[1]})), (socket.AF_INET, ('169.254.169.254', 80)),
                      (socket.AF_INET, ('192.0.2.1', 80)), (socket.AF_INET6, ('::ffff:127.0.0.1', {listener.getsockname()[1]}))):
    s = socket.socket(family); s.settimeout(1)
    try: s.connect(where); print('connected', where)
    except OSError as e: pass
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try: s.sendto(b'x', ('192.0.2.1', 53)); print('sent')
except OSError: pass
print('done')
"""
    control = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, timeout=harness.PATIENCE).stdout
    assert "connected ('127.0.0.1'" in control
    assert run_json("--level", level, "--", PYTHON, "-c", code)["stdout"] == "done\n"
    listener.close()


def test_root_is_read_only():
    code = """
import os
for place in ('/', '/usr', '/bin', '/etc', '/lib', '/dev', '/proc', '/proc/sys', '/usr/local', '/proc/self/..'):
    try:
        open(place + '/belljar-test', 'w'); print('wrote', place)
    except OSError: pass
    try:
        os.mkdir(place + '/belljar-dir'); print('made', place)
    except OSError: pass
for path in ('/etc/passwd', '/bin/sh', '/usr/bin/env', '/etc/hosts'):
    for attempt in (lambda: os.chmod(path, 0o777), lambda: os.utime(path), lambda: os.unlink(path), lambda: open(path, 'a'),
                    lambda: os.setxattr(path, 'user.x', b'1'), lambda: os.rename(path, '/tmp/x'), lambda: os.link(path, '/tmp/y'),
                    lambda: os.truncate(path, 0)):
        try: attempt(); print('changed', path)
        except OSError: pass
print('done')
"""
    assert run_json("--", PYTHON, "-c", code)["stdout"] == "done\n"


def test_overwriting_belljar_through_proc_self_exe():
    before = open(harness.BELLJAR, "rb").read()
    code = """
import os
for pid in ('1', 'self', str(os.getppid())):
    try:
        fd = os.open(f'/proc/{pid}/exe', os.O_RDWR); print('writable', pid)
    except OSError: pass
print('done')
"""
    assert run_json("--", PYTHON, "-c", code)["stdout"] == "done\n"
    assert open(harness.BELLJAR, "rb").read() == before


def test_links_out_of_a_mount(shared):
    """Neither hard links nor symlinks lead from a writable mount to files of the host."""
    (shared.parent / "secret").write_text("SECRET")
    os.symlink(shared.parent / "secret", shared / "planted")
    result = run_json("--rw", f"{shared}:/w", "--", "/bin/sh", "-c",
                      "cat /w/planted 2>/dev/null; cat /w/../secret 2>/dev/null; ln /etc/passwd /w/hard 2>/dev/null && echo LINKED; echo done")
    assert result["stdout"] == "done\n"


def test_work_directory_by_descriptor():
    """cwd=/proc/self/fd/N was a way out of other sandboxes: the working directory is resolved inside."""
    directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    os.set_inheritable(directory, True)
    for workdir in (f"/proc/self/fd/{directory}", f"/proc/self/fd/{directory}/../../..", "/proc/1/root", "/proc/thread-self/cwd"):
        result = run_json("--workdir", workdir, "--", "/bin/sh", "-c", "pwd; ls", pass_fds=[directory])
        assert "boot" not in result["stdout"].split() and "root" not in result["stdout"].split(), result
    os.close(directory)


def test_sysv_and_posix_ipc_are_private():
    libc = ctypes.CDLL(None, use_errno=True)
    key = int.from_bytes(os.urandom(3), "big") | 0x41000000
    segment = libc.shmget(key, 4096, 0o1666)
    assert segment >= 0
    try:
        code = f"import ctypes; c = ctypes.CDLL(None); print(c.shmget({key}, 0, 0), c.msgget({key}, 0))"
        control = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True).stdout
        assert not control.startswith("-1"), "the control must find the segment"
        assert run_json("--", PYTHON, "-c", code)["stdout"] == "-1 -1\n"
    finally:
        libc.shmctl(segment, 0, None)


def test_shared_memory_directory_is_private():
    path = f"/dev/shm/test-{os.urandom(6).hex()}"
    with open(path, "w", encoding="utf-8") as file:
        file.write("x")
    try:
        assert run_json("--", "/bin/ls", "-A", "/dev/shm")["stdout"] == ""
        run_json("--", "/bin/sh", "-c", f"echo y > {path}.guest")
        assert not os.path.exists(path + ".guest")
    finally:
        os.unlink(path)
