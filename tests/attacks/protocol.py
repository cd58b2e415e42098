"""Attacks by what is said: records and requests that no honest client sends."""

import random
import socket
import subprocess
import threading
import time

from connections import client_hello
from records import ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, HEARTBEAT, RecordClient, RecordClient12
from server import Server, get, receive_all, status, statuses

ALERTS = {0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 22: "record_overflow", 50: "decode_error",
          47: "illegal_parameter", 100: "no_renegotiation"}


def name_alerts(alerts):
    return " ".join(ALERTS.get(alert, str(alert)) for alert in alerts) or "none"


def record_attack(server, act):
    client = RecordClient(server.port)
    try:
        act(client)
    except OSError:
        pass
    alerts, data = client.ending()
    client.socket.close()
    return alerts, data


def judge(kettle, cases, limits='idle_timeout = "2s"\nrequest_timeout = "2s"'):
    """Runs each (name, act, allowed endings) against one server."""
    seen, good = [], True
    with Server(kettle, limits=limits) as server:
        for name, act, allowed in cases:
            alerts, data = record_attack(server, act)
            right = alerts in [[alert] for alert in allowed] or (None in allowed and not alerts)
            good = good and right and data == 0
            seen.append(f"{name}: {name_alerts(alerts)}" + (f", {data} bytes of data" if data else "") + ("" if right else " (!)"))
        served = server.serves()
        good = good and served and not server.has_panicked()
    return "; ".join(seen), good


def repeat(times, content_type, content=b"", padding=0):
    def act(client):
        client.socket.sendall(b"".join(client.seal(content_type, content, padding) for _ in range(times)))
    return act


def record_floods(kettle):
    """Floods of records that say nothing, after the handshake"""
    return judge(kettle, [
        ("10,000 empty records", repeat(10000, APPLICATION_DATA), [10]),
        ("200 records of 16,384 bytes padding", repeat(200, APPLICATION_DATA, b"", 16384), [10]),
        ("10,000 user_canceled alerts", repeat(10000, ALERT, b"\x01\x5a"), [10]),
        ("10,000 no_renegotiation warnings", repeat(10000, ALERT, b"\x01\x64"), [None]),
        ("empty alert", repeat(1, ALERT), [50]),
        ("three-byte alert", repeat(1, ALERT, b"\1\0\0"), [50]),
    ])


def key_update_storms(kettle):
    """KeyUpdates without end, with and without a request for the server's own"""
    def storm(count, requested):
        return lambda client: client.socket.sendall(b"".join(client.key_update(requested) for _ in range(count)))

    def per_byte(client):
        for byte in b"\x18\0\0\1\0":
            client.send(HANDSHAKE, bytes([byte]))
        client.secret = client.expand(client.secret, b"traffic upd", client.digest().digest_size)
        client.install()
        client.send(CHANGE_CIPHER_SPEC, b"\1")

    return judge(kettle, [
        ("10,000 with request", storm(10000, True), [10]),
        ("10,000 without", storm(10000, False), [10]),
        ("one in five records, then change_cipher_spec", per_byte, [10]),
        ("two in one record", repeat(1, HANDSHAKE, b"\x18\0\0\1\0" * 2), [10]),
        ("request of 2", repeat(1, HANDSHAKE, b"\x18\0\0\1\2"), [47]),
    ])


def key_update_not_read(kettle):
    """KeyUpdates with request, eight a second for 5 s, whose answers are never read: memory"""
    with Server(kettle) as server:
        client, before = RecordClient(server.port), server.memory_kib()
        for _ in range(5):
            for _ in range(8):
                client.socket.sendall(client.key_update(True))
            time.sleep(1.1)
        client.send(APPLICATION_DATA, get("/1k", "close"))
        grown = server.memory_kib() - before
        alerts, data = client.ending()
        return f"+{grown} KiB; the request after them got {data} bytes, {name_alerts(alerts)}", alerts == [0] and data > 1024


def record_floods_tls12(kettle):
    """The same in TLS 1.2, with ClientHellos (renegotiation) without end"""
    cases = [
        ("10,000 empty records", APPLICATION_DATA, b"", [10]),
        ("10,000 warnings", ALERT, b"\1\x5a", [10]),
        ("10,000 ClientHellos", HANDSHAKE, b"\1\0\0\4abcd", [100] * 4 + [10]),
        ("10,000 HelloRequests", HANDSHAKE, b"\0\0\0\0", [10]),
        ("10,000 empty handshake records", HANDSHAKE, b"", [10]),
        ("10,000 change_cipher_specs", CHANGE_CIPHER_SPEC, b"\1", [10]),
        ("10,000 heartbeats", HEARTBEAT, b"\1\x40\0", [10]),
    ]
    seen, good = [], True
    with Server(kettle) as server:
        for name, content_type, content, expected in cases:
            client = RecordClient12(server.port)
            try:
                client.socket.sendall(b"".join(client.seal(content_type, content) for _ in range(10000)))
            except OSError:
                pass
            alerts, data = client.ending()
            client.socket.close()
            good = good and alerts == expected and not data
            seen.append(f"{name}: {name_alerts(alerts)}" + ("" if alerts == expected else " (!)"))
        good = good and server.serves() and not server.has_panicked()
    return "; ".join(seen), good


def handshake_garbage(kettle):
    """Handshake messages, heartbeats and broken records after the handshake"""
    def raw(data):
        return lambda client: client.socket.sendall(data)

    def flipped(client):
        record = bytearray(client.seal(APPLICATION_DATA, get("/")))
        record[-1] ^= 1
        client.socket.sendall(record)

    def replayed(client):
        record = client.seal(APPLICATION_DATA, b"GET")
        client.socket.sendall(record + record)

    return judge(kettle, [
        ("ClientHello", repeat(1, HANDSHAKE, b"\1\0\0\4abcd"), [10]),
        ("NewSessionTicket", repeat(1, HANDSHAKE, b"\4\0\0\4abcd"), [10]),
        ("Finished", repeat(1, HANDSHAKE, b"\x14\0\0\x20" + b"x" * 32), [10]),
        ("empty handshake record", repeat(1, HANDSHAKE), [10]),
        ("sealed heartbeat asking for 16 KiB", repeat(1, HEARTBEAT, b"\1\x40\0"), [10]),
        ("plain heartbeat asking for 16 KiB", raw(b"\x18\3\3\0\3\1\x40\0"), [10]),
        ("type 0", repeat(1, 0, b"\0"), [10]),
        ("type 255", repeat(1, 255, b"abc"), [10]),
        ("tag with one bit wrong", flipped, [20]),
        ("the same record twice", replayed, [20]),
        ("length 16,641", raw(b"\x17\3\3\x41\x01" + b"x" * 16641), [22]),
        ("plaintext of 16,385", repeat(1, APPLICATION_DATA, b"x" * 16385), [22]),
        ("length 0", raw(b"\x17\3\3\0\0"), [20, 50, 10]),
        ("version 0x0909", raw(b"\x17\x09\x09\0\x20" + b"x" * 32), [70, 20, 10]),
        ("plain HTTP", raw(b"GET / HTTP/1.1\r\n\r\n"), [10, 22, 20]),
    ])


def before_handshake(kettle):
    """4,000 connections with garbage in place of, or within, the handshake"""
    generator, hello = random.Random(1), client_hello()
    with Server(kettle, tls='handshake_timeout = "2s"') as server:
        before = server.memory_kib()
        for number in range(4000):
            kind = number % 4
            if kind == 0:
                data = generator.randbytes(generator.randrange(1, 3000))
            elif kind == 1:
                data = b"\x18\3\2\0\3\1\x40\0"
            elif kind == 2:
                place = generator.randrange(len(hello))
                data = hello[:place] + generator.randbytes(1) + hello[place + 1:]
            else:
                data = hello + generator.randbytes(300)
            client = socket.create_connection(("127.0.0.1", server.port))
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                client.settimeout(0.2)
                client.recv(4096)
            except OSError:
                pass
            client.close()
        served, grown = server.serves(), server.memory_kib() - before
        return f"no panic: {not server.has_panicked()}, served in {served:.0f} ms, +{grown} KiB", served and not server.has_panicked()


def handshake_cut(kettle):
    """A ClientHello cut at every 16th byte, then nothing, close_notify, change_cipher_spec or application data"""
    hello = client_hello()
    with Server(kettle, tls='handshake_timeout = "2s"') as server:
        for place in range(0, len(hello), 16):
            for end in (b"", b"\x15\3\3\0\2\1\0", b"\x14\3\3\0\1\1", b"\x17\3\3\0\1a"):
                client = socket.create_connection(("127.0.0.1", server.port), 3)
                client.sendall(hello[:place] + end)
                client.shutdown(socket.SHUT_WR)
                receive_all(client)
                client.close()
        served, busy = server.serves(), server.cpu_percent(2)
        return f"no panic: {not server.has_panicked()}, {busy:.1f} % CPU afterwards", served and busy < 5 and not server.has_panicked()


def renegotiation(kettle):
    """TLS 1.2 renegotiation: `R` in openssl s_client"""
    with Server(kettle) as server:
        def session(lines):
            process = subprocess.Popen(
                ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_2", "-legacy_renegotiation"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for line in lines:
                try:
                    process.stdin.write(line)
                    process.stdin.flush()
                except OSError:
                    break
                time.sleep(0.3)
            try:
                return process.communicate(timeout=20)[0].decode(errors="replace")
            except OSError:
                return process.stdout.read().decode(errors="replace")
        text = session([b"R\n", b"R\n", b"R\n"])
        refused = "no renegotiation" in text
        return ("refused with no_renegotiation" if refused else text[-300:]), refused and server.serves()


def big_heads(kettle):
    """Heads of 1 MB in one line, 10,000 fields, an endless target or method; 20 times each"""
    with Server(kettle) as server:
        before, seen, good = server.memory_kib(), [], True
        cases = [("1 MB field", b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * (1 << 20) + b"\r\n\r\n", 431),
                 ("10,000 fields", b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 10000 + b"\r\n", 431),
                 ("1 MB target", b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
                 ("1 MB of empty lines", b"\r\n" * (1 << 19), 400),
                 ("1 MB method", b"G" * (1 << 20), 501)]
        for name, data, expected in cases:
            found = set()
            for _ in range(20):
                with server.connect() as client:
                    try:
                        client.sendall(data)
                    except OSError:
                        pass
                    found.add(status(receive_all(client)))
            good = good and found <= {expected}
            seen.append(f"{name}: {'/'.join(map(str, sorted(found)))}")
        peak = server.memory_kib("VmHWM") - before
        return "; ".join(seen) + f"; +{peak} KiB at most", good and peak < 20000


def pipelines(kettle):
    """10,000 requests in one write; and 200,000 while reading nothing"""
    with Server(kettle, limits='write_timeout = "3s"') as server:
        with server.connect(30) as client:
            data = get("/index.html") * 9999 + get("/index.html", "close")
            sender = threading.Thread(target=client.sendall, args=(data,))
            sender.start()
            answers = statuses(receive_all(client))
            sender.join()
        before = server.memory_kib()
        with server.connect(30) as client:
            client.settimeout(2)
            sent = 0
            try:
                while sent < 200000:
                    client.sendall(get("/1k") * 100)
                    sent += 100
            except OSError:
                pass
            grown = server.memory_kib() - before
        served = server.serves()
        return (f"{answers.count(200)} answers of 10,000; with nothing read the client blocks after {sent} requests, "
                f"+{grown} KiB"), answers == [200] * 10000 and grown < 2000 and served


def ranges(kettle):
    """Range fields that ask for much, for nothing or for nonsense"""
    cases = [
        ("1,000 ranges of a byte", "bytes=" + ",".join(f"{n * 2}-{n * 2}" for n in range(1000)), 200, None),
        ("1,000 times everything", "bytes=" + ",".join(["0-"] * 1000), 200, None),
        ("60 times everything", "bytes=" + ",".join(["0-"] * 60), 206, 1 << 20),
        ("16 apart", "bytes=" + ",".join(f"{n * 10}-{n * 10}" for n in range(16)), 206, None),
        ("17 apart", "bytes=" + ",".join(f"{n * 10}-{n * 10}" for n in range(17)), 200, None),
        ("2^63", f"bytes={2**63}-", 416, None), ("2^64", f"bytes=0-{2**64}", 206, 1 << 20),
        ("30 digits", "bytes=" + "9" * 30 + "-", 416, None), ("suffix of 2^64", f"bytes=-{2**64}", 206, 1 << 20),
        ("0-0,-1", "bytes=0-0,-1", 206, None), ("-0", "bytes=-0", 416, None), ("5-2", "bytes=5-2", 200, None),
        ("-", "bytes=-", 200, None), ("+1-2", "bytes=+1-2", 200, None), ("lines=0-", "lines=0-", 200, None),
        ("--1", "bytes=--1", 200, None),
    ]
    with Server(kettle) as server:
        seen, good, largest = [], True, 0
        for name, value, expected, length in cases:
            with server.connect() as client:
                client.sendall(get("/1m", "close", f"Range: {value}\r\n"))
                head, _, body = receive_all(client).partition(b"\r\n\r\n")
            right = status(head + b" ") == expected and (length is None or len(body) == length)
            largest = max(largest, len(body))
            good = good and right
            seen.append(f"{name}: {status(head + b' ')}" + ("" if right else " (!)"))
        return "; ".join(seen) + f"; never more than {largest} bytes for a file of {1 << 20}", good and largest < (1 << 20) + 5000


NEXT = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


def smuggling(kettle):
    """Framing that two programs could read differently; a second request follows at once"""
    def post(fields, body=b""):
        return b"POST / HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n\r\n" + body

    closing = [  # one answer, and nothing is taken for a second request
        ("CL twice, different", post(b"Content-Length: 0\r\nContent-Length: 5")),
        ("CL twice, same", post(b"Content-Length: 5\r\nContent-Length: 5", b"hello")),
        ("CL list", post(b"Content-Length: 5, 5", b"hello")),
        ("CL +5", post(b"Content-Length: +5", b"hello")), ("CL -1", post(b"Content-Length: -1")),
        ("CL 0x5", post(b"Content-Length: 0x5", b"hello")), ("CL 5 5", post(b"Content-Length: 5 5", b"hello")),
        ("CL 2^64", post(b"Content-Length: 18446744073709551616")), ("CL empty", post(b"Content-Length:")),
        ("CL and TE", post(b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n")),
        ("TE and CL", post(b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n")),
        ("TE twice", post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n")),
        ("TE chunked, identity", post(b"Transfer-Encoding: chunked, identity", b"0\r\n\r\n")),
        ("TE identity", post(b"Transfer-Encoding: identity")), ("TE xchunked", post(b"Transfer-Encoding: xchunked")),
        ("TE in quotes", post(b'Transfer-Encoding: "chunked"')), ("TE with tab and VT", post(b"Transfer-Encoding: \x0bchunked")),
        ("TE folded", post(b"Transfer-Encoding:\r\n chunked")), ("TE with space before colon", post(b"Transfer-Encoding : chunked")),
        ("space before first field", b"GET / HTTP/1.1\r\n Host: a\r\n\r\n"), ("empty name", post(b": x")),
        ("bare LF", b"GET / HTTP/1.1\nHost: a\n\n"), ("bare CR", b"GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n"),
        ("NUL in value", b"GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n"), ("NUL in name", b"GET / HTTP/1.1\r\nHost: a\r\nX\0: y\r\n\r\n"),
        ("TE in HTTP/1.0", b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ("HTTP/0.9", b"GET /\r\n"),
        ("chunk of 17 digits", post(b"Transfer-Encoding: chunked", b"10000000000000000\r\n")),
        ("chunk 0x5", post(b"Transfer-Encoding: chunked", b"0x5\r\nhello\r\n0\r\n\r\n")),
        ("chunk -1", post(b"Transfer-Encoding: chunked", b"-1\r\n")),
        ("chunk with bare LF", post(b"Transfer-Encoding: chunked", b"5\nhello\r\n0\r\n\r\n")),
        ("chunk data too long", post(b"Transfer-Encoding: chunked", b"5\r\nhelloX\r\n0\r\n\r\n")),
        ("extension with bare LF", post(b"Transfer-Encoding: chunked", b"5;a\nb\r\nhello\r\n0\r\n\r\n")),
        ("Expect with body", post(b"Expect: 100-continue\r\nContent-Length: 5", b"hello")),
        ("two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), ("no Host", b"GET / HTTP/1.1\r\n\r\n"),
    ]
    going_on = [  # the first is answered, its body is not taken for a request, the second is answered
        ("CL 5", post(b"Content-Length: 5", b"hello")), ("CL 005", post(b"Content-Length: 005", b"hello")),
        ("a request as body", post(b"Content-Length: %d" % len(NEXT), NEXT)),
        ("chunked", post(b"Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n")),
        ("chunked with a request in it", post(b"Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(NEXT), NEXT))),
        ("chunked, extension, trailer", post(b"Transfer-Encoding: chunked", b"05;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n")),
        ("GET with body", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
    ]
    with Server(kettle) as server:
        wrong = []
        for expected, cases in ((1, closing), (2, going_on)):
            for name, data in cases:
                for cut in (None, 1):
                    with server.connect() as client:
                        try:
                            for byte in [data + NEXT] if cut is None else [bytes([b]) for b in data + NEXT]:
                                client.sendall(byte)
                            client.settimeout(1 if expected == 2 else 5)
                            answers = statuses(receive_until_quiet(client))
                        except OSError as error:
                            answers = [str(error)]
                    if len(answers) != expected or (expected == 2 and answers[1] != 404) or (expected == 1 and 404 in answers):
                        wrong.append(f"{name}{' bytewise' if cut else ''}: {answers}")
        return (f"{len(closing)} cases answered once and closed, {len(going_on)} read past exactly, each in one piece and byte by byte; "
                f"exceptions: {wrong or 'none'}"), not wrong and server.serves()


def receive_until_quiet(client):
    data = b""
    while True:
        try:
            part = client.recv(65536)
        except (TimeoutError, ConnectionError):
            return data
        if not part:
            return data
        data += part


def half_close(kettle):
    """A client that says close_notify and closes its side right after the request"""
    with Server(kettle) as server:
        client = RecordClient(server.port)
        client.socket.sendall(client.seal(APPLICATION_DATA, get("/1m")) + client.seal(ALERT, b"\1\0"))
        client.socket.shutdown(socket.SHUT_WR)
        alerts, data = client.ending()
        return f"{data} bytes, then {name_alerts(alerts)}", data > 1 << 20 and alerts == [0]


def random_requests(kettle):
    """5,000 requests with random bytes in random places, several a connection"""
    generator = random.Random(2)
    base = get("/folder/../1k?x=1", "keep-alive", "Range: bytes=0-10\r\nIf-None-Match: \"a\"\r\nAccept-Encoding: gzip;q=0.5\r\n")
    with Server(kettle) as server:
        found = {}
        for _ in range(5000):
            data = bytearray(base)
            for _ in range(generator.randrange(1, 6)):
                data[generator.randrange(len(data))] = generator.randrange(256)
            with server.connect() as client:
                try:
                    client.sendall(bytes(data) + get("/1k", "close"))
                    first = (statuses(receive_all(client)) or [0])[0]
                except OSError:
                    first = 0
            found[first] = found.get(first, 0) + 1
        return f"{dict(sorted(found.items()))}; no panic: {not server.has_panicked()}", not server.has_panicked() and server.serves() and not any(s == 500 for s in found)


ATTACKS = [record_floods, record_floods_tls12, key_update_storms, key_update_not_read, handshake_garbage, before_handshake, handshake_cut,
           renegotiation, big_heads, pipelines, ranges, smuggling, half_close, random_requests]
