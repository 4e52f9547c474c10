"""Makes a virtual environment inside, with pip out of the bundled wheels, and runs from it."""
import subprocess
import sys
import venv

venv.create("/workspace/env", with_pip="--with-pip" in sys.argv, symlinks=True)
code = "import sys; print(sys.prefix, sys.prefix != sys.base_prefix)"
print(subprocess.check_output(["/workspace/env/bin/python", "-c", code], text=True), end="")
if "--with-pip" in sys.argv:
    print(subprocess.check_output(["/workspace/env/bin/pip", "--version"], text=True).split()[0])
