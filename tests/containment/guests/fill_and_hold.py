# The beginning of guests that hold the lock of their own output: some processes fill the pipe and take it over and over,
# each time until toss() lets go. Whoever reads the pipe then sleeps, sooner or later, at the lock.
import os, socket, sys, time
pairs = [socket.socketpair() for _ in range(4)]
for ours, theirs in pairs:
    theirs.setblocking(False)
    if os.fork() == 0:
        while True:
            os.write(1, b'x' * 4096)
            os.splice(ours.fileno(), 1, 1)
def toss():
    for _, theirs in pairs:
        try: theirs.send(b'x')
        except BlockingIOError: pass
    time.sleep(0.01)
