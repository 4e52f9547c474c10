"""Finds, fetches and unpacks Debian kernels for the virtual machine; nothing is installed on this machine.

A kernel is cached as KERNEL_DIR/<release>/{vmlinuz,lib/modules/<release>}. Modules are stored uncompressed, because
Debian compresses them from 6.12 on and busybox's loader cannot be relied on to unpack them.
"""

import dataclasses
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

# Releases whose kernels are looked up besides those this machine's own package lists name: 5.10 and 6.16 to 7.x.
OTHER_SUITES = ("bullseye", "trixie", "trixie-backports")
# Generic images only: the cloud flavour has no 9p file system.
IMAGE_NAME = re.compile(r"^linux-image-(\d[0-9a-z.+~-]*-amd64)$")
OTHER_FLAVOUR = re.compile(r"-(cloud|rt)-amd64$")
# Hardware drivers are most of the archive and of no use under qemu; these are the ones a guest may ask for.
KEPT_DRIVERS = ("virtio", "block", "char/virtio_console", "net/virtio_net", "net/net_failover", "net/veth", "net/dummy",
                "net/tun", "net/macvlan", "net/ipvlan", "net/wireguard", "vhost")


class KernelError(Exception):
    """The kernel could not be found or prepared; the text says what to do."""


@dataclasses.dataclass(frozen=True)
class Kernel:
    release: str
    image: pathlib.Path
    modules: pathlib.Path  # .../lib/modules/<release>


@dataclasses.dataclass(frozen=True)
class Package:
    name: str
    release: str
    apt_options: tuple[str, ...]


def version_key(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release.split("+")[0].split("-amd64")[0]))


def cache_dir() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "belljar-vm"


def available(refresh_days: float = 7) -> list[Package]:
    """Every generic amd64 kernel that can be downloaded, oldest first; a release found twice is listed once."""
    found: dict[str, Package] = {}
    for options in _apt_sources(refresh_days):
        for name in _run(["apt-cache", *options, "pkgnames", "linux-image-"], check=False).split():
            match = IMAGE_NAME.match(name)
            if match and not OTHER_FLAVOUR.search(name) and re.match(r"\d+\.\d+\.\d+", match[1]):
                found.setdefault(match[1], Package(name, match[1], options))
    return sorted(found.values(), key=lambda package: version_key(package.release))


def prepare(wanted: str, busybox: str) -> Kernel:
    """`wanted`: a path (.deb or unpacked tree), a release, a version prefix (6.1), or default, oldest, newest."""
    path = pathlib.Path(wanted)
    if "/" in wanted or path.suffix == ".deb":
        if path.is_dir():
            return _adopt(path, busybox)
        if path.suffix == ".deb" and path.is_file():
            return _unpack([path], busybox)
        raise KernelError(f"--kernel {wanted}: not a .deb nor a directory with boot/vmlinuz-* and lib/modules/. "
                          "A bare vmlinuz is not enough, its modules are needed too.")
    cached = sorted((entry.name for entry in _kernel_dir().glob("[0-9]*") if not OTHER_FLAVOUR.search(entry.name)),
                    key=version_key)
    if wanted in cached:
        return _unpacked(_kernel_dir() / wanted)
    if matching := [release for release in cached if _matches(release, wanted)]:
        return _unpacked(_kernel_dir() / matching[-1])  # so that a cached kernel needs no network
    package = _choose(wanted)
    if package.release in cached:
        return _unpacked(_kernel_dir() / package.release)
    with tempfile.TemporaryDirectory(prefix="belljar-vm-") as folder:
        # apt's download user may not enter a private directory and would warn about it.
        os.chmod(folder, 0o755)
        names = [package.name, *_parts(package)]
        _run(["apt-get", *package.apt_options, "-o", "APT::Sandbox::User=root", "-q", "download", *names], cwd=folder)
        return _unpack(list(pathlib.Path(folder).glob("*.deb")), busybox)


def _matches(release: str, wanted: str) -> bool:
    return release == wanted or re.match(re.escape(wanted) + r"(?![0-9])", release) is not None


def _choose(wanted: str) -> Package:
    packages = available()
    if not packages:
        raise KernelError("no linux-image package is known to apt here; run `apt-get update`, or give --kernel a "
                          "path to a linux-image .deb.")
    if wanted == "oldest":
        return packages[0]
    if wanted == "newest":
        return packages[-1]
    if wanted == "default":
        depends = _run(["apt-cache", "show", "--no-all-versions", "linux-image-amd64"], check=False)
        match = re.search(r"linux-image-(\S+-amd64)", depends[depends.find("\nDepends:"):])
        wanted = match[1] if match else packages[-1].release
    if matching := [package for package in packages if _matches(package.release, wanted)]:
        return matching[-1]
    raise KernelError(f"no kernel {wanted} in the package lists; tests/vm/run --list-kernels shows what there is.")


def _apt_sources(refresh_days: float) -> list[tuple[str, ...]]:
    """apt option sets: this machine's own lists, then one private state directory per other Debian suite."""
    sources: list[tuple[str, ...]] = [()]
    mirror = _debian_mirror()
    for suite in OTHER_SUITES if mirror else ():
        state = cache_dir() / "apt" / suite
        for folder in ("lists/partial", "cache/archives/partial"):
            (state / folder).mkdir(parents=True, exist_ok=True)
        source = state / "sources.list"
        source.write_text(f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} {suite} main\n")
        options = ("-o", f"Dir::Etc::sourcelist={source}", "-o", "Dir::Etc::sourceparts=/dev/null",
                   "-o", f"Dir::State={state}", "-o", f"Dir::State::lists={state}/lists",
                   "-o", f"Dir::Cache={state}/cache", "-o", "Dir::State::status=/dev/null",
                   "-o", "APT::Sandbox::User=root",
                   "-o", "Acquire::Languages=none", "-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
                   "-o", "APT::Architecture=amd64", "-o", "APT::Architectures=amd64")
        stamp = state / "updated"
        if not stamp.exists() or stamp.stat().st_mtime + refresh_days * 86400 < time.time():
            updated = subprocess.run(["apt-get", *options, "-q", "update"], capture_output=True, text=True, check=False)
            # apt-get update exits 0 on some download failures and only warns about them.
            if updated.returncode == 0 and "Err:" not in updated.stdout:
                stamp.touch()
        sources.append(options)
    return sources


def _debian_mirror() -> str:
    """The mirror this machine already uses: the other suites lie beside its own one."""
    listing = _run(["apt-get", "indextargets", "--format", "$(IDENTIFIER) $(ORIGIN) $(REPO_URI)"], check=False)
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[0] == "Packages" and fields[1] == "Debian" and "security" not in fields[2]:
            return fields[2]
    return ""


def _parts(package: Package) -> list[str]:
    """From 6.19 on the image package is empty and names the packages that hold the kernel and its modules."""
    shown = _run(["apt-cache", *package.apt_options, "show", "--no-all-versions", package.name])
    part = re.compile(r"linux-(?:binary|modules|base)-" + re.escape(package.release))
    return sorted(set(part.findall(shown)))


def _unpack(packages: list[pathlib.Path], busybox: str) -> Kernel:
    with tempfile.TemporaryDirectory(prefix="belljar-vm-") as folder:
        for package in packages:
            _run(["dpkg-deb", "-x", str(package), folder])
        return _adopt(pathlib.Path(folder), busybox)


def _adopt(tree: pathlib.Path, busybox: str) -> Kernel:
    """Copies an unpacked package into the cache; by renaming, so that a run beside this one never sees half of it."""
    kernel = _unpacked(tree)
    target = _kernel_dir() / kernel.release
    if target.is_dir():
        return _unpacked(target)
    _kernel_dir().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=_kernel_dir()) as folder:
        ready = pathlib.Path(folder) / kernel.release
        _copy_modules(kernel.modules, ready / "lib/modules" / kernel.release)
        _run([busybox, "depmod", "-b", str(ready), kernel.release])
        shutil.copy(kernel.image, ready / "vmlinuz")
        try:
            ready.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another run was first, and its copy is as good
                raise
    return _unpacked(target)


def _copy_modules(source: pathlib.Path, target: pathlib.Path) -> None:
    for path in source.rglob("*.ko*"):
        relative = path.relative_to(source)
        parts = relative.as_posix().split("/", 2)
        if parts[1] == "drivers" and not parts[2].startswith(KEPT_DRIVERS) or parts[1] == "sound":
            continue
        copy = target / relative.with_name(relative.name.removesuffix(".xz"))
        copy.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes()
        copy.write_bytes(lzma.decompress(data) if path.suffix == ".xz" else data)
    for name in ("modules.builtin", "modules.order"):
        shutil.copy(source / name, target / name)


def _unpacked(tree: pathlib.Path) -> Kernel:
    places = ("vmlinuz", "boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
    images = [image for place in places for image in tree.glob(place)]
    modules = [*tree.glob("lib/modules/*"), *tree.glob("usr/lib/modules/*")]
    if len(images) != 1 or len(modules) != 1:
        raise KernelError(f"{tree}: expected one boot/vmlinuz-* and one lib/modules/* there. Remove it if it is a "
                          "broken cache entry, or unpack a linux-image .deb with dpkg-deb -x.")
    return Kernel(modules[0].name, images[0].resolve(), modules[0].resolve())


def _kernel_dir() -> pathlib.Path:
    return cache_dir() / "kernels"


def _run(argv: list[str], check: bool = True, cwd: str | None = None) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=cwd)
    except FileNotFoundError as error:
        raise KernelError(f"{argv[0]} is missing; kernels are fetched with Debian's tools (apt, dpkg-deb). Give "
                          "--kernel a directory holding boot/vmlinuz-* and lib/modules/.") from error
    if check and done.returncode != 0:
        raise KernelError(f"{' '.join(argv)} failed ({done.returncode}): {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
