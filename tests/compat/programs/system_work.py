"""What programs ask about where they are: user, home, time zones, locale, platform, memory, libraries, chance."""
import ctypes
import ctypes.util
import datetime
import getpass
import grp
import hashlib
import locale
import os
import pathlib
import platform
import pwd
import random
import secrets
import subprocess
import sysconfig
import tempfile
import time
import uuid
import zoneinfo

print("user", getpass.getuser(), pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name)
home = pathlib.Path.home()
(home / "settings").write_text("x")
print("home", home, os.environ.get("HOME"), os.path.expanduser("~"))
print("cwd", os.getcwd(), tempfile.gettempdir())
winter = datetime.datetime(2024, 1, 15, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
print("zone", winter.isoformat(), "Asia/Tokyo" in zoneinfo.available_timezones())
assert time.tzname[0] and abs(time.time() - datetime.datetime.now().timestamp()) < 5
assert locale.setlocale(locale.LC_ALL, "C.UTF-8") and platform.libc_ver()[0] == "glibc" and platform.platform()
libm = ctypes.CDLL(ctypes.util.find_library("m"))
libm.cos.restype, libm.cos.argtypes = ctypes.c_double, [ctypes.c_double]
callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 5)(5, 3, 1, 4, 2)
ctypes.CDLL(None).qsort(numbers, 5, ctypes.sizeof(ctypes.c_int), callback(lambda a, b: a[0] - b[0]))
print("ctypes", libm.cos(0.0), list(numbers))
assert len({uuid.uuid1(), uuid.uuid4()}) == 2
assert len(secrets.token_bytes(32)) == 32 and random.SystemRandom().random() < 1
assert os.getrandom(8) and hashlib.scrypt(b"p", salt=b"s", n=1024, r=8, p=1) and sysconfig.get_paths()
assert os.sysconf("SC_PAGE_SIZE") and os.sysconf("SC_NPROCESSORS_ONLN") >= 1 and os.getloadavg() and os.uname().nodename
for path in ("/proc/self/status", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/version",
             "/proc/self/maps", "/proc/mounts", "/proc/loadavg", "/proc/sys/kernel/osrelease", "/proc/filesystems",
             "/proc/sys/vm/overcommit_memory", "/proc/self/cgroup", "/proc/sys/kernel/random/uuid", "/etc/os-release",
             "/etc/localtime", "/etc/nsswitch.conf", "/etc/ssl/certs/ca-certificates.crt"):
    try:
        assert pathlib.Path(path).read_bytes()
    except OSError as error:
        print("missing", path, error.strerror)
# What is not there must be "no such file": exists() raises on "permission denied".
for path in ("/sys/fs/cgroup/cpu.max", "/sys/devices/system/cpu/online", "/var/lib/dpkg", "/etc/gitconfig"):
    assert not pathlib.Path(path).exists(), path
assert os.listdir("/sys") == []
length = subprocess.check_output(["bash", "-c", "x=ü; echo ${#x}"], text=True).strip()
print("text", os.environ.get("LANG"), locale.getpreferredencoding(), length)
print("system ok")
