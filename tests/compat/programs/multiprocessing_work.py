"""multiprocessing: every start method, Pool, Manager, Queue, Pipe, Lock, shared_memory, Value, ProcessPoolExecutor."""
import concurrent.futures
import multiprocessing
import os
from multiprocessing import shared_memory


def square(number):
    return number * number


def add(value, lock):
    for _ in range(100):
        with lock:
            value.value += 1


def answer(queue, pipe, method):
    pipe.send((method, os.getpid()))
    queue.put(pipe.recv() * 2)


def fill(name):
    block = shared_memory.SharedMemory(name=name)
    block.buf[:5] = b"hello"
    block.close()


def try_method(method):
    context = multiprocessing.get_context(method)
    queue, (here, there) = context.Queue(), context.Pipe()
    child = context.Process(target=answer, args=(queue, there, method))
    child.start()
    name, pid = here.recv()
    here.send(21)
    assert (name, pid) == (method, child.pid) and queue.get(timeout=30) == 42
    child.join()
    assert child.exitcode == 0

    value, lock = context.Value("i", 0), context.Lock()
    children = [context.Process(target=add, args=(value, lock)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert value.value == 200
    print(method, "ok")


def main():
    for method in ("fork", "spawn", "forkserver"):
        try_method(method)
    with multiprocessing.Pool(4) as pool:
        print("pool", sum(pool.map(square, range(100))))
    with multiprocessing.Manager() as manager:
        shared = manager.dict()
        child = multiprocessing.Process(target=shared.update, args=({"key": [1, 2, 3]},))
        child.start()
        child.join()
        print("manager", dict(shared))
    block = shared_memory.SharedMemory(create=True, size=1 << 20)
    child = multiprocessing.Process(target=fill, args=(block.name,))
    child.start()
    child.join()
    print("shared_memory", bytes(block.buf[:5]).decode(), os.path.exists(f"/dev/shm/{block.name}"))
    block.close()
    block.unlink()
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        print("executor", list(pool.map(square, [3, 4])))


if __name__ == "__main__":
    main()
