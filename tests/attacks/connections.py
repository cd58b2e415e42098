"""Attacks by number and by slowness: connections that cost the server something and give nothing."""

import os
import re
import select
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

from server import Server, context, get, receive_all, status, wait_until


def connect_plain(port, count):
    return [socket.create_connection(("127.0.0.1", port), 10) for _ in range(count)]


def client_hello():
    """The first flight of Python's own client."""
    outgoing = ssl.MemoryBIO()
    session = context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()


def until_closed(sockets, seconds, each_second=None):
    """How many the server closed, and when the last one, in seconds."""
    open_ones, began, last = set(sockets), time.monotonic(), 0.0
    poll = select.poll()
    by_number = {s.fileno(): s for s in sockets}
    for number in by_number:
        poll.register(number, select.POLLIN | select.POLLHUP | select.POLLERR)
    while open_ones and time.monotonic() - began < seconds:
        for number, _ in poll.poll(1000):
            client = by_number[number]
            try:
                ended = not client.recv(4096)
            except OSError:
                ended = True
            if ended:
                poll.unregister(number)
                open_ones.discard(client)
                last = time.monotonic() - began
        if each_second:
            each_second(open_ones)
    return len(sockets) - len(open_ones), last


def close_all(sockets):
    for client in sockets:
        client.close()


def slow_client_hello(kettle):
    """200 connections that send the ClientHello one byte a second"""
    with Server(kettle) as server:
        hello, clients, sent = client_hello(), connect_plain(server.port, 200), [0]

        def drip(open_ones):
            for client in list(open_ones):
                try:
                    client.send(hello[sent[0]:sent[0] + 1])
                except OSError:
                    pass
            sent[0] += 1
            answered.append(server.serves())

        answered = []
        closed, last = until_closed(clients, 20, drip)
        close_all(clients)
        return (f"all {closed} closed after {last:.1f} s; another client was served each second, at most "
                f"{max(a or 1e9 for a in answered):.0f} ms"), closed == 200 and last < 13 and all(answered)


def idle_connections(kettle):
    """5,000 TCP connections that send nothing"""
    with Server(kettle) as server:
        before = server.memory_kib()
        clients = connect_plain(server.port, 5000)
        time.sleep(1)
        grown, latency = server.memory_kib() - before, server.serves()
        closed, last = until_closed(clients, 25)
        close_all(clients)
        return (f"+{grown / 5000:.1f} KiB each, another client served in {latency:.0f} ms meanwhile; all {closed} closed "
                f"after {last:.1f} s"), closed == 5000 and latency < 1000


def idle_sessions(kettle):
    """400 connections that handshake, ask once and then say nothing (idle_timeout = \"3s\")"""
    with Server(kettle, limits='idle_timeout = "3s"') as server:
        before, clients = server.memory_kib(), []
        for _ in range(400):
            client = server.connect()
            client.sendall(get("/1k"))
            client.recv(2048)
            clients.append(client)
        grown = server.memory_kib() - before
        closed, last = until_closed(clients, 10)
        close_all(clients)
        return f"+{grown / len(clients):.1f} KiB each; all {closed} closed after {last:.1f} s", closed == len(clients)


def reset_flood(kettle):
    """20,000 connections, each reset at once"""
    with Server(kettle) as server:
        before, linger = server.descriptors(), struct.pack("ii", 1, 0)
        began, latencies = time.monotonic(), []
        for number in range(20000):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            try:
                client.connect(("127.0.0.1", server.port))
            except OSError:
                pass
            client.close()
            if number % 1000 == 0:
                latencies.append(server.serves() or 1e9)
        rate = 20000 / (time.monotonic() - began)
        back = wait_until(lambda: server.descriptors() <= before + 4, 15)
        return (f"{rate:.0f} a second; another client served in at most {max(latencies):.0f} ms; "
                f"descriptors {before} before, {server.descriptors()} after"), back and max(latencies) < 2000


def reset_in_handshake(kettle):
    """3,000 connections that send a ClientHello and reset when the answer comes"""
    with Server(kettle) as server:
        hello, linger, before = client_hello(), struct.pack("ii", 1, 0), server.descriptors()
        for _ in range(3000):
            client = socket.create_connection(("127.0.0.1", server.port))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            client.sendall(hello)
            client.recv(100)
            client.close()
        back = wait_until(lambda: server.descriptors() <= before + 4, 15)
        served = server.serves()
        return f"descriptors {before} before, {server.descriptors()} after; served in {served:.0f} ms", back and served


def descriptors_exhausted(kettle):
    """200 connections with `prlimit --nofile=64`"""
    with Server(kettle, nofile=64) as server:
        clients = connect_plain(server.port, 200)
        time.sleep(1)
        busy, held = server.cpu_percent(3), server.descriptors()
        complaints = server.messages().count("cannot accept")
        close_all(clients)
        recovered = wait_until(lambda: server.serves(2), 10)
        return (f"{held} of 64 descriptors in use, {busy:.1f} % CPU while full, {complaints} log lines in 4 s; "
                f"served again: {bool(recovered)}"), busy < 5 and recovered


def descriptors_exhausted_file(kettle):
    """A file asked for on an open connection when no descriptor is left"""
    with Server(kettle, nofile=64) as server:
        first = server.connect()
        clients = connect_plain(server.port, 100)
        time.sleep(1.5)
        first.sendall(get("/64m"))
        answer = status(first.recv(4096))
        close_all(clients)
        time.sleep(1.5)
        return f"status {answer}; served afterwards: {bool(server.serves())}", answer in (500, 503) and server.serves()


def stopped_and_continued(kettle):
    """`kill -STOP` for 5 s in the middle of downloads, then `kill -CONT`"""
    with Server(kettle) as server:
        lengths = []

        def download():
            with server.connect(30) as client:
                client.sendall(get("/64m", "close"))
                lengths.append(len(receive_all(client).partition(b"\r\n\r\n")[2]))

        threads = [threading.Thread(target=download) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        os.kill(server.process.pid, signal.SIGSTOP)
        waiting = connect_plain(server.port, 100)
        time.sleep(5)
        os.kill(server.process.pid, signal.SIGCONT)
        for thread in threads:
            thread.join(60)
        served = server.serves()
        close_all(waiting)
        return (f"{lengths.count(1 << 26)} of 4 downloads complete, 100 connections waited, next client served in "
                f"{served or -1:.0f} ms"), lengths == [1 << 26] * 4 and served


def reloads(kettle):
    """1,000 SIGHUPs under keep-alive and new-connection load"""
    with Server(kettle) as server:
        going, results = [True], {"requests": 0, "failures": []}

        def load(keeps):
            while going[0]:
                try:
                    with server.connect() as client:
                        while going[0]:
                            client.sendall(get("/1k", "keep-alive" if keeps else "close"))
                            answer = b""
                            while b"\r\n\r\n" not in answer or len(answer.partition(b"\r\n\r\n")[2]) < 1024:
                                part = client.recv(8192)
                                if not part:
                                    break
                                answer += part
                            results["requests"] += 1
                            if status(answer) != 200 or len(answer.partition(b"\r\n\r\n")[2]) != 1024:
                                results["failures"].append(answer[:60])
                            if b"connection: close" in answer.partition(b"\r\n\r\n")[0].lower():
                                break
                except OSError as error:
                    results["failures"].append(error)

        for _ in range(3):
            os.kill(server.process.pid, signal.SIGHUP)
            time.sleep(0.05)
        before = server.descriptors()
        threads = [threading.Thread(target=load, args=(n % 2 == 0,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(1000):
            os.kill(server.process.pid, signal.SIGHUP)
            time.sleep(0.015)
        going[0] = False
        for thread in threads:
            thread.join()
        done = len(re.findall(r"reload", server.messages()))
        wait_until(lambda: server.descriptors() <= before, 5)
        after = server.descriptors()
        return (f"{results['requests']} requests, {len(results['failures'])} failed {results['failures'][:2] or ''}; descriptors "
                f"{before} before, {after} after; {done} messages about reloads; {server.memory_kib()} KiB"
                ), not results["failures"] and after <= before + 1


def slow_readers(kettle):
    """50 clients that ask for 64 MiB and read nothing (write_timeout = \"3s\")"""
    with Server(kettle, limits='write_timeout = "3s"') as server:
        before, clients = server.memory_kib(), []
        for _ in range(50):
            client = server.connect()
            client.sendall(get("/64m"))
            clients.append(client)
        time.sleep(1)
        grown, open_before = server.memory_kib() - before, server.descriptors()
        reaped = wait_until(lambda: server.descriptors() <= open_before - 50, 15)
        served = server.serves()
        close_all(clients)
        return f"+{grown / 50:.0f} KiB each; all closed by the server: {reaped}; served in {served:.0f} ms", reaped and served


def plain_listener(kettle):
    """300 connections to the redirect listener that send half a head (request_timeout = \"2s\")"""
    with Server(kettle, limits='request_timeout = "2s"') as server:
        clients = connect_plain(server.plain, 300)
        for client in clients:
            client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        closed, last = until_closed(clients, 10)
        close_all(clients)
        return f"all {closed} closed after {last:.1f} s", closed == 300 and last < 5


def admin_socket(kettle):
    """40 idle connections to the control socket"""
    with Server(kettle) as server:
        clients = []
        for _ in range(40):
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(server.folder / "admin.sock"))
            clients.append(client)
        time.sleep(0.5)
        served = server.serves()
        close_all(clients)
        told = subprocess.run([kettle, "ctl", "--socket", str(server.folder / "admin.sock"), "status"],
                              capture_output=True, timeout=20).returncode
        return f"clients served in {served:.0f} ms; `ctl status` works when they are gone: {told == 0}", served and told == 0


def slowhttptest(kettle):
    """`slowhttptest` over TLS in its four modes, 300 connections, 10 s each"""
    seen, good = [], True
    for mode, extra in [("-H", []), ("-B", []), ("-X", ["-w", "10", "-y", "20", "-n", "5", "-z", "32"]), ("-R", ["-a", "1", "-b", "3000"])]:
        with Server(kettle, limits='request_timeout = "4s"') as server:
            before = server.memory_kib()
            output = subprocess.run(
                ["slowhttptest", mode, *extra, "-c", "300", "-r", "150", "-i", "1", "-x", "10", "-l", "10", "-p", "2",
                 "-u", f"https://127.0.0.1:{server.port}/1m"], capture_output=True, text=True, timeout=60)
            text = re.sub(r"\x1b\[[0-9;]*m", "", output.stdout + output.stderr)
            states = re.findall(r"service available:\s*(\w+)", text)
            closed = (re.findall(r"closed:\s*(\d+)", text) or ["?"])[-1]
            peak = (server.memory_kib("VmHWM") - before) / 300
            available = bool(states) and all(state == "YES" for state in states)
            good = good and available and not server.has_panicked()
            seen.append(f"{mode}: available {'always' if available else states}, {closed} closed, +{peak:.0f} KiB each at most")
    return "; ".join(seen), good


ATTACKS = [slowhttptest, slow_client_hello, idle_connections, idle_sessions, slow_readers, plain_listener, reset_flood,
           reset_in_handshake, descriptors_exhausted, descriptors_exhausted_file, stopped_and_continued, reloads, admin_socket]
