"""asyncio: tasks, a TCP server on the own loopback, a subprocess, signals, threads as executor, a unix socket."""
import asyncio
import os
import signal
import sys


async def serve(reader, writer):
    line = await reader.readline()
    writer.write(line.upper())
    await writer.drain()
    writer.close()


async def ask(opened, text):
    reader, writer = await opened
    writer.write(text + b"\n")
    await writer.drain()
    answer = await reader.readline()
    writer.close()
    return answer


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    answers = await asyncio.gather(*[ask(asyncio.open_connection("127.0.0.1", port), b"n%d" % n) for n in range(20)])
    assert answers == [b"N%d\n" % n for n in range(20)]
    server.close()

    unix = await asyncio.start_unix_server(serve, "/tmp/socket")
    assert await ask(asyncio.open_unix_connection("/tmp/socket"), b"unix") == b"UNIX\n"
    unix.close()

    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(input()[::-1])",
                                                 stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    out, _ = await child.communicate(b"stressed\n")
    assert out == b"desserts\n" and child.returncode == 0

    seen = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, seen.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(seen.wait(), 10)
    total = await loop.run_in_executor(None, sum, range(1000))
    try:
        await asyncio.wait_for(asyncio.sleep(60), 0.05)
    except asyncio.TimeoutError:
        print("asyncio ok", total)


asyncio.run(main())
