"""Writes the small archive the kernel starts from: busybox, the modules that reach the shared root, and the job."""

import pathlib

import kernels

# What it takes to mount the shared tree (9p over virtio), the scratch disk (ext4) and to talk to the host (console).
# Names, in loading order; dependencies are added, and what is built into a kernel is left out.
BOOT_MODULES = ("virtio_pci", "virtio_console", "virtio_blk", "crc32c_generic", "ext4", "9pnet_virtio", "9p", "overlay")
# ext4 asks for this one by the name of its algorithm only up to 6.x; later kernels have it as a library.
MAY_BE_ABSENT = ("crc32c_generic",)


def boot_modules(kernel: kernels.Kernel) -> list[pathlib.Path]:
    dependencies = _dependencies(kernel.modules)
    builtin = {_name(line) for line in (kernel.modules / "modules.builtin").read_text().split()}
    ordered: list[str] = []
    for wanted in BOOT_MODULES:
        name = wanted.replace("-", "_")
        if name in builtin or name not in dependencies and name in MAY_BE_ABSENT:
            continue
        if name not in dependencies:
            raise kernels.KernelError(f"kernel {kernel.release} has no module {wanted}; use a generic "
                                      "linux-image-*-amd64, not the cloud flavour.")
        # depmod lists the nearest dependency first, and a module can only be loaded after all it needs.
        for path in reversed(dependencies[name]):
            if path not in ordered:
                ordered.append(path)
    return [kernel.modules / path for path in ordered]


def build(kernel: kernels.Kernel, busybox: str, files: dict[str, str]) -> bytes:
    """`files`: path inside the archive to text; all of them are executable."""
    archive = _Archive()
    for folder in ("bin", "dev", "proc", "sys", "modules", "vm"):
        archive.add(folder, 0o040755, b"")
    archive.add("bin/busybox", 0o100755, pathlib.Path(busybox).read_bytes())
    loading = []
    for index, path in enumerate(boot_modules(kernel)):
        loading.append(f"/modules/{index:02}-{path.name}\n")
        archive.add(loading[-1].strip().lstrip("/"), 0o100644, path.read_bytes())
    archive.add("modules/list", 0o100644, "".join(loading).encode())
    for path, text in files.items():
        archive.add(path, 0o100755, text.encode(errors="surrogateescape"))
    return archive.finish()


def _dependencies(modules: pathlib.Path) -> dict[str, list[str]]:
    table = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, needed = line.partition(":")
        table[_name(path)] = [path, *needed.split()]
    return table


def _name(path: str) -> str:
    return pathlib.PurePosixPath(path).name.split(".ko")[0].replace("-", "_")


class _Archive:
    """The "newc" cpio format of the kernel's Documentation/driver-api/early-userspace/buffer-format.rst."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._inode = 0

    def add(self, name: str, mode: int, content: bytes) -> None:
        self._inode += 1
        fields = (self._inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        self._data += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self._pad()
        self._data += content
        self._pad()

    def finish(self) -> bytes:
        self.add("TRAILER!!!", 0, b"")
        return bytes(self._data)

    def _pad(self) -> None:
        self._data += b"\0" * (-len(self._data) % 4)
