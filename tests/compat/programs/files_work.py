"""Files: tempfile, shutil, mmap, locks, links, attributes, watching, sqlite3 in every journal mode, archives."""
import ctypes
import fcntl
import mmap
import os
import pathlib
import shutil
import sqlite3
import stat
import tempfile
import zipfile

with tempfile.TemporaryDirectory() as name:
    root = pathlib.Path(name)
    tree = root / "tree" / "deep"
    tree.mkdir(parents=True)
    (tree / "data").write_bytes(os.urandom(1 << 16))
    (tree / "link").symlink_to("data")
    os.link(tree / "data", tree / "hard")
    os.mkfifo(tree / "pipe")
    os.chmod(tree / "data", 0o640)
    os.utime(tree / "data", (1e9, 1e9))
    os.remove(tree / "pipe")
    copy = root / "copy"
    shutil.copytree(root / "tree", copy, symlinks=True)
    copied = copy / "deep" / "data"
    assert copied.read_bytes() == (tree / "data").read_bytes()
    assert stat.S_IMODE(copied.stat().st_mode) == 0o640 and copied.stat().st_mtime == 1e9
    assert os.readlink(copy / "deep" / "link") == "data" and (tree / "hard").stat().st_nlink == 2
    # From /tmp to the workdir: another filesystem, so that move has to copy and delete.
    moved = shutil.move(str(copy), "/workspace/moved")
    assert not copy.exists() and sorted(os.listdir(moved + "/deep")) == ["data", "hard", "link"]
    for form in ("zip", "gztar", "xztar", "bztar"):
        archive = shutil.make_archive(str(root / "archive"), form, root / "tree")
        shutil.unpack_archive(archive, root / form)
        assert (root / form / "deep" / "data").stat().st_size == 1 << 16
    assert zipfile.ZipFile(root / "archive.zip").testzip() is None
    os.rename(tree / "hard", root / "tree" / "elsewhere")  # between directories: Landlock's REFER
    os.replace(tree / "data", root / "tree" / "elsewhere")
    assert shutil.disk_usage("/workspace").total > 1 << 20

    with open(root / "mapped", "w+b") as file:
        file.truncate(1 << 20)
        with mmap.mmap(file.fileno(), 0) as pages:
            pages[4096:4101] = b"pages"
            pages.flush()
        os.posix_fallocate(file.fileno(), 0, 2 << 20)
        os.pwrite(file.fileno(), b"end", 5 << 20)
        assert os.pread(file.fileno(), 5, 4096) == b"pages" and os.fstat(file.fileno()).st_size == (5 << 20) + 3
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.lockf(file, fcntl.LOCK_EX)
        os.fsync(file.fileno())

    with tempfile.NamedTemporaryFile() as named, tempfile.TemporaryFile() as unnamed:
        for file in (named, unnamed):
            file.write(b"x")
        assert os.path.dirname(named.name) == "/tmp"

    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(0)
    assert libc.inotify_add_watch(watch, os.fsencode(root), 0x100) > 0  # IN_CREATE
    (root / "new").touch()
    assert b"new" in os.read(watch, 4096)
    os.setxattr(root / "new", "user.colour", b"green")
    assert os.getxattr(root / "new", "user.colour") == b"green"

rows = 0
for mode in ("delete", "wal", "memory", "truncate"):
    path = f"/workspace/{mode}.db"
    database = sqlite3.connect(path)
    assert database.execute(f"pragma journal_mode={mode}").fetchone()[0] == mode
    with database:
        database.execute("create table t (n integer primary key, text)")
        database.executemany("insert into t values (?, ?)", [(n, "x" * n) for n in range(200)])
    other = sqlite3.connect(path)
    rows += other.execute("select count(*) from t where length(text) = n").fetchone()[0]
    database.close()
    other.close()
print("files ok", rows)
