"""threading: locks, conditions, queues, pools, thread-local data, a deep stack, many threads at once."""
import concurrent.futures
import queue
import threading

counter, lock, local = 0, threading.Lock(), threading.local()


def count():
    global counter
    local.mine = 0
    for _ in range(1000):
        with lock:
            counter += 1
        local.mine += 1
    assert local.mine == 1000


threads = [threading.Thread(target=count) for _ in range(100)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

jobs, done = queue.Queue(), queue.Queue()
threading.Thread(target=lambda: [done.put(jobs.get() ** 2) for _ in range(10)], daemon=True).start()
for number in range(10):
    jobs.put(number)
squares = [done.get(timeout=10) for _ in range(10)]

barrier = threading.Barrier(8)
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    assert sorted(pool.map(lambda _: barrier.wait(10), range(8))) == list(range(8))

threading.stack_size(64 << 20)
deep = threading.Thread(target=lambda: None)
deep.start()
deep.join()
timer = threading.Event()
threading.Timer(0.02, timer.set).start()
assert timer.wait(10)
print("threads ok", counter, sum(squares))
