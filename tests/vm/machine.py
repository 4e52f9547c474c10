"""One virtual machine: what it is started with, its streams, and its end in every case."""

import argparse
import ctypes
import os
import pathlib
import secrets
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import time

import initramfs
import kernels

HERE = pathlib.Path(__file__).resolve().parent
FAILED = 125


class Stream:
    """Passes a guest stream on at once, but holds back what may be the start of the mark that ends it."""

    def __init__(self, target: int, mark: bytes) -> None:
        self.ended = False
        self._target = target
        self._mark = mark
        self._held = b""

    def feed(self, data: bytes) -> None:
        data = self._held + data
        self._held = b""
        if (end := data.find(self._mark)) >= 0:
            self.ended = True
            data = data[:end]
        else:
            for length in range(min(len(self._mark) - 1, len(data)), 0, -1):
                if self._mark.startswith(data[-length:]):
                    data, self._held = data[:-length], data[-length:]
                    break
        while data:
            data = data[os.write(self._target, data):]


class Machine:
    """One running qemu, from start to the guest's report; leaving the with block ends it in any case."""

    PORTS = ("console", "stdout", "stderr", "status")

    def __init__(self, options: argparse.Namespace, kernel: kernels.Kernel) -> None:
        end_mark = f"\x1e{secrets.token_hex(8)}"
        archive = memory_file(initramfs.build(kernel, find_tool("busybox"), guest_files(options, kernel, end_mark)))
        pipes = {name: os.pipe() for name in self.PORTS}
        ends = {name: pipe[1] for name, pipe in pipes.items()}
        self._readers = {pipe[0]: name for name, pipe in pipes.items()}
        self._streams = {"stdout": Stream(1, end_mark.encode()), "stderr": Stream(2, end_mark.encode())}
        self._verbose = options.verbose
        self.console = b""
        self._report = b""
        self.ready_at = 0.0
        self.exit_code: int | None = None
        inherited = [archive, *ends.values()]
        self._qemu = subprocess.Popen(qemu_arguments(options, kernel, archive, ends), pass_fds=inherited,
                                      stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        for descriptor in inherited:
            os.close(descriptor)

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *_: object) -> None:
        self._qemu.kill()
        self._qemu.wait()

    def follow(self, deadline: float) -> bool:
        """Streams until the report is complete or qemu ended; False when the deadline came first."""
        with selectors.DefaultSelector() as selector:
            for descriptor in self._readers:
                selector.register(descriptor, selectors.EVENT_READ)
            while not self._complete() and selector.get_map():
                # Looked at each time round: a guest that never stops writing must not outrun its deadline.
                remaining = deadline - time.monotonic()
                events = selector.select(remaining) if remaining > 0 else []
                if not events:
                    return False
                for key, _ in events:
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        selector.unregister(key.fd)
                    self._take(self._readers[key.fd], data)
        return True

    def _complete(self) -> bool:
        return self.exit_code is not None and all(stream.ended for stream in self._streams.values())

    def _take(self, port: str, data: bytes) -> None:
        if port in self._streams:
            self._streams[port].feed(data)
        elif port == "console":
            self.console = (self.console + data)[-65536:]
            if self._verbose:
                os.write(2, data)
        else:
            *lines, self._report = (self._report + data).split(b"\n")
            for line in lines:
                self._take_report(line.decode(errors="replace"))

    def _take_report(self, line: str) -> None:
        kind, _, text = line.partition(" ")
        if kind == "ready":
            self.ready_at = time.monotonic()
        elif kind == "note":
            say(text)
        elif kind == "exit":
            self.exit_code = int(text)
            if not self.ready_at:  # refused before there was anything to stream
                for stream in self._streams.values():
                    stream.ended = True


def say(text: str) -> None:
    print(f"vm: {text}", file=sys.stderr, flush=True)


def find_tool(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin")


def scratch_template() -> pathlib.Path:
    """An empty ext4, made once; qemu keeps what a guest writes apart from it (snapshot=on) and drops it at the end."""
    template = kernels.cache_dir() / "scratch-8g.ext4"
    if not template.exists():
        template.parent.mkdir(parents=True, exist_ok=True)
        unfinished = template.with_suffix(f".{os.getpid()}")
        with open(unfinished, "wb") as file:
            file.truncate(8 << 30)
        subprocess.run([find_tool("mkfs.ext4"), "-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=1",
                        str(unfinished)], check=True)
        unfinished.rename(template)
    return template


def guest_files(options: argparse.Namespace, kernel: kernels.Kernel, end_mark: str) -> dict[str, str]:
    settings = {"VM_CGROUP": options.cgroup, "VM_DELEGATE": options.delegate, "VM_CONTROLLERS": options.controllers,
                "VM_USERNS": options.userns, "VM_USER": options.user, "VM_MODULES": str(kernel.modules.parent),
                "VM_END_MARK": end_mark}
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": "/scratch/tmp",
                   "LANG": "C.UTF-8", "BELLJAR_VM": "1", "PYTHONDONTWRITEBYTECODE": "1",
                   "BELLJAR": str(HERE.parents[1] / "build/test/src/cli/belljar")}
    environment |= {name: value for name, value in os.environ.items() if name.startswith("BELLJAR")}
    for entry in options.env:
        name, given, value = entry.partition("=")
        environment[name] = value if given else os.environ.get(name, "")
    kept = " ".join(f'{name}="${name}"' for name in ("HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR"))
    assigned = " ".join(shlex.quote(f"{name}={value}") for name, value in environment.items())
    job = (f"cd {shlex.quote(os.getcwd())} || exit {FAILED}\n"
           f"exec /usr/bin/env -i {kept} {assigned} {shlex.join(options.command)}\n")
    files = {f"vm/{name}": (HERE / "guest" / name).read_text() for name in ("setup.sh", "cgroups.sh", "launch.sh")}
    files["init"] = (HERE / "guest" / "init.sh").read_text()
    files["vm/settings"] = "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items())
    files["vm/job.sh"] = job
    return files


def qemu_arguments(options: argparse.Namespace, kernel: kernels.Kernel, archive: int,
                   ports: dict[str, int]) -> list[str]:
    # 5-level page tables make every emulated page walk longer and no guest program needs them.
    accel, cpu = ("tcg,thread=multi", "max,la57=off") if options.accel == "tcg" else ("kvm", "host")
    append = ("console=ttyS0 loglevel=4 panic=-1 mitigations=off random.trust_cpu=on rcupdate.rcu_expedited=1 "
              f"{options.kernel_args}")
    arguments = [
        find_tool("qemu-system-x86_64"), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-machine", "q35,smm=off,vmport=off", "-accel", accel, "-cpu", cpu,
        "-smp", str(options.cpus), "-m", str(options.memory),
        "-kernel", str(kernel.image), "-initrd", f"/proc/self/fd/{archive}", "-append", append,
        # Mounts below / are shared with it, hence remap: inode numbers of two file systems must not be taken for one.
        "-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
        "-device", "virtio-9p-pci,fsdev=root,mount_tag=host",
        "-drive", f"file={scratch_template()},format=raw,if=none,id=scratch,snapshot=on,cache=unsafe",
        "-device", "virtio-blk-pci,drive=scratch", "-device", "virtio-serial-pci"]
    for index, (name, descriptor) in enumerate(ports.items(), start=1):
        arguments += ["-add-fd", f"fd={descriptor},set={index}",
                      "-chardev", f"file,id={name},path=/dev/fdset/{index},append=on"]
        arguments += (["-serial", f"chardev:{name}"] if name == "console" else
                      ["-device", f"virtserialport,chardev={name},name={name},nr={index}"])
    return arguments


def memory_file(data: bytes) -> int:
    """Not a temporary file: nothing is left behind however this program ends."""
    descriptor = os.memfd_create("initramfs", 0)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    return descriptor


def die_with_parent() -> None:
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
