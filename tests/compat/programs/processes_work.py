"""Processes: subprocess in its ways, fork, signals, process groups, pty, select, poll, epoll, pidfd, timers, limits."""
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import time

assert subprocess.run(["echo", "one"], capture_output=True, text=True, check=True).stdout == "one\n"
assert subprocess.check_output("echo two | tr a-z A-Z; exit 0", shell=True, text=True) == "TWO\n"
assert subprocess.run(["cat"], input=b"x" * 200000, capture_output=True).stdout == b"x" * 200000
assert subprocess.run(["sh", "-c", "kill -TERM $$"]).returncode == -signal.SIGTERM
with_session = subprocess.Popen(["sleep", "60"], start_new_session=True)
os.killpg(with_session.pid, signal.SIGKILL)
assert with_session.wait() == -signal.SIGKILL
try:
    subprocess.run(["sleep", "60"], timeout=0.1)
    raise AssertionError("no timeout")
except subprocess.TimeoutExpired:
    pass
os.dup2(1, 9)
assert subprocess.run([sys.executable, "-c", "import os; os.close(9)"], pass_fds=(9,)).returncode == 0
assert os.posix_spawn("/bin/true", ["true"], {}) > 0
os.wait()

reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.write(writer, b"%d" % (os.getsid(0) == os.getpid()))
    os._exit(7)
status = os.wait()[1]
assert os.waitstatus_to_exitcode(status) == 7 and os.read(reader, 9) == b"1"

# An orphan is adopted and reaped by pid 1 of the sandbox.
grandchild = int(subprocess.check_output(["sh", "-c", "sleep 0.2 >/dev/null & echo $!"]))
deadline = time.monotonic() + 10
while os.path.exists(f"/proc/{grandchild}") and time.monotonic() < deadline:
    time.sleep(0.02)
assert not os.path.exists(f"/proc/{grandchild}"), "a zombie was left"

caught = []
signal.signal(signal.SIGALRM, lambda *_: caught.append("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.02)
signal.pause()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
os.kill(os.getpid(), signal.SIGUSR2)
assert signal.sigwait([signal.SIGUSR2]) == signal.SIGUSR2 and caught == ["alarm"]

reader, writer = os.pipe()
os.write(writer, b"x")
assert select.select([reader], [], [], 5)[0] == [reader]
poll = select.poll()
poll.register(reader, select.POLLIN)
assert poll.poll(5000) == [(reader, select.POLLIN)]
with select.epoll() as epoll:
    epoll.register(reader, select.EPOLLIN)
    assert epoll.poll(5) == [(reader, select.EPOLLIN)]
child = subprocess.Popen(["sleep", "0.05"])
pidfd = os.pidfd_open(child.pid)
assert select.select([pidfd], [], [], 10)[0] == [pidfd] and child.wait() == 0

pid, master = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", 'test -t 0 && stty size && read line </dev/tty && echo "got $line" && tty'])
text = b""
os.write(master, b"typed\n")
while True:
    try:
        part = os.read(master, 1024)
    except OSError:  # EIO: the other end is gone
        break
    if not part:
        break
    text += part
assert os.waitpid(pid, 0)[1] == 0 and b"got typed" in text and b"/dev/pts/" in text, text

resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
assert os.nice(1) == 1 and os.cpu_count() >= 1 and len(os.sched_getaffinity(0)) >= 1
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print("processes ok")
