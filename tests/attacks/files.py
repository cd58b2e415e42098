"""Attacks by way of the file system: paths out of the root, links and files that change while they are read."""

import os
import socket
import subprocess
import threading
import time

from server import Server, get, receive_all, status

TRAVERSALS = [
    "/../outside.txt", "/folder/../../outside.txt", "/%2e%2e/outside.txt", "/.%2e/outside.txt", "/%2e./outside.txt",
    "/%252e%252e/outside.txt", "/..%2foutside.txt", "/..%252foutside.txt", "/%2e%2e%2foutside.txt", "/..%5coutside.txt",
    "/..\\outside.txt", "/folder/..\\..\\outside.txt", "/..;/outside.txt", "/..%00/outside.txt", "/%00/../outside.txt",
    "/index.html%00.txt", "/..%c0%afoutside.txt", "/%c0%ae%c0%ae/outside.txt", "/%e0%80%ae%e0%80%ae/outside.txt",
    "/%u002e%u002e/outside.txt", "//../outside.txt", "/./../outside.txt", "/folder//..//..//outside.txt",
    "/....//outside.txt", "/.../outside.txt", "/..%0d/outside.txt", "/..%09/outside.txt", "/%2e%2e%3f/outside.txt",
    "http://localhost/../outside.txt", "http://localhost/%2e%2e/outside.txt", "https://localhost:1/folder/../../outside.txt",
    "../outside.txt", "outside.txt", "file:///etc/passwd", "/proc/self/environ", "/folder/../.secret", "/.secret",
    "/%2esecret", "/folder/%2e%2e/.secret", "/./.secret", "//.secret", "/link-out", "/link-out-folder/outside.txt",
    "/link-absolute", "/link-proc/self/environ", "/folder/a.txt/", "/folder/a.txt/../../../outside.txt", "/" + "../" * 200 + "outside.txt",
    "/" + "a/" * 3000, "/" + "a" * 300, "/fifo", "/socket", "/device", "/1k", "/folder/",
]


def traversal(kettle):
    """A corpus of paths to a file beside the root, a dot file, links out of the root and special files"""
    with Server(kettle) as server:
        site = server.site
        os.symlink("../outside.txt", site / "link-out")
        os.symlink("..", site / "link-out-folder")
        os.symlink("/etc/passwd", site / "link-absolute")
        os.symlink("/proc", site / "link-proc")
        os.mkfifo(site / "fifo")
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(site / "socket"))
        try:
            os.mknod(site / "device", 0o020666, os.makedev(1, 5))
        except PermissionError:
            pass
        os.symlink("../outside.txt", site / "1k.gz")
        os.symlink("../../outside.txt", site / "folder" / "index.html")
        leaks, found = [], {}
        for target in TRAVERSALS:
            with server.connect(5) as client:
                client.sendall(get(target, "close", "Accept-Encoding: gzip\r\n"))
                answer = receive_all(client)
            found[status(answer)] = found.get(status(answer), 0) + 1
            if b"CANARY" in answer or b"root:" in answer or status(answer) == 200 and b"PATH=" in answer or status(answer) == 0:
                leaks.append(target[:40])
        bound.close()
        return f"{len(TRAVERSALS)} targets, statuses {dict(sorted(found.items()))}, got out: {leaks or 'none'}", not leaks and server.serves()


def symlink_race(kettle):
    """A name that is a file, then a link out of the root, then a file, as fast as rename can, during 20,000 requests"""
    with Server(kettle, limits='revalidate = "0s"') as server:
        going, swaps = [True], [0]
        (server.site / "real").write_text("inside")

        def swap():
            while going[0]:
                for make in (lambda p: os.symlink("../outside.txt", p), lambda p: os.link(server.site / "real", p)):
                    make(server.site / "new")
                    os.rename(server.site / "new", server.site / "name")
                    if os.path.lexists(server.site / "new"):
                        os.unlink(server.site / "new")
                    swaps[0] += 1

        return race(server, swap, going, swaps, "/name", 20000)


def folder_race(kettle):
    """The same with a folder on the way: `d/outside.txt`, where `d` is a folder or a link to the root's parent"""
    with Server(kettle, limits='revalidate = "0s"') as server:
        going, swaps = [True], [0]
        (server.site / "real").mkdir()
        (server.site / "real" / "outside.txt").write_text("inside")
        os.symlink("..", server.site / "evil")
        os.symlink("real", server.site / "good")

        def swap():
            while going[0]:
                for target in ("..", "real"):
                    os.symlink(target, server.site / "new")
                    os.rename(server.site / "new", server.site / "d")
                    swaps[0] += 1

        return race(server, swap, going, swaps, "/d/outside.txt", 10000)


def race(server, swap, going, swaps, path, requests):
    """Asks for a path while a thread swaps what is there: nothing from outside of the root may come"""
    swapper = threading.Thread(target=swap)
    swapper.start()
    found, leaked = {}, 0
    with server.connect() as client:
        for _ in range(requests):
            client.sendall(get(path))
            answer = b""
            while b"\r\n\r\n" not in answer or len(answer.partition(b"\r\n\r\n")[2]) < length_of(answer):
                answer += client.recv(65536)
            found[status(answer)] = found.get(status(answer), 0) + 1
            leaked += b"CANARY" in answer
    going[0] = False
    swapper.join()
    return f"{swaps[0]} swaps, statuses {found}, contents from outside: {leaked}", not leaked and set(found) <= {200, 404, 403}


def length_of(answer):
    for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


def truncation(kettle):
    """A file shortened, removed, replaced or lengthened in the middle of a download with curl"""
    seen, good = [], True
    with Server(kettle) as server:
        for name, change, expected in [
            ("cut to 1 MiB", lambda path: os.truncate(path, 1 << 20), (18, 56)),
            ("cut to nothing", lambda path: os.truncate(path, 0), (18, 56)),
            ("removed", os.unlink, (0,)),
            ("replaced by rename", lambda path: os.rename(server.site / "1k", path), (0,)),
            ("lengthened", lambda path: open(path, "ab").write(b"x" * 1000000), (0,)),
        ]:
            path, kept = server.site / "big", os.urandom(1 << 20) * 32
            path.write_bytes(kept)
            curl = subprocess.Popen(["curl", "-sk", "--limit-rate", "8M", "-o", str(server.folder / "got"),
                                     f"https://localhost:{server.port}/big"])
            time.sleep(0.6)
            change(path)
            code = curl.wait(30)
            whole = code != 0 or (server.folder / "got").read_bytes() == kept
            good = good and code in expected and whole
            seen.append(f"{name}: curl {code}" + ("" if whole else " with wrong bytes"))
            (server.site / "1k").write_bytes(os.urandom(1024))
        served = server.serves()
    return "; ".join(seen), good and served


def many_names(kettle):
    """50,000 requests for names that do not exist, with random queries: memory"""
    with Server(kettle) as server:
        before, left = server.memory_kib(), 50000
        while left:
            with server.connect() as client:
                for _ in range(100):
                    client.sendall(b"".join(get(f"/{os.urandom(6).hex()}?{os.urandom(4).hex()}") for _ in range(10)))
                    got = b""
                    while got.count(b"HTTP/1.1 404") < 10 or not got.endswith(b"</html>\n"):
                        part = client.recv(1 << 16)
                        if not part:
                            break
                        got += part
                    left -= 10
        grown = server.memory_kib() - before
        return f"+{grown} KiB", grown < 4000


ATTACKS = [traversal, symlink_race, folder_race, truncation, many_names]
