"""Attacks by way of what surrounds the server: its logs, tickets, certificates and signals."""

import json
import os
import re
import signal
import subprocess
import time

from server import Server, get, receive_all, wait_until


def log_injection(kettle):
    """Targets and fields with quotes, backslashes, escape sequences and bytes above 0x7F, in both formats of the log"""
    evil = ['"', "\\", '\\"', "\\u0000", "\x9b31m", "\xc2\x9b31m", "\u00ff\u00fe", '","status":200,"x":"', "%0a%0d", "\u2028".encode().decode("latin-1")]
    seen, good = [], True
    for log_format in ("json", "combined"):
        with Server(kettle, log_format=log_format) as server:
            for text in evil:
                with server.connect() as client:
                    client.sendall(get("/1k?" + "".join(c for c in text if c.isascii()), "close",
                                       f"User-Agent: {text}\r\nReferer: {text}\r\n"))
                    receive_all(client)
                with server.connect() as client:
                    client.sendall(f"GET /\x1b[31m{text} HTTP/1.1\r\nHost: a\r\n\r\n".encode("latin-1"))
                    receive_all(client)
            expected = 2 * len(evil)
            server.process.terminate()
            server.process.wait(10)
            lines = (server.folder / "access.log").read_bytes().split(b"\n")[:-1]
            lines = [line for line in lines if b"GET" in line or b'"status":400' in line or b" 400 " in line]
            raw = sum(is_raw(line, log_format) for line in lines)
            broken = 0
            if log_format == "json":
                for line in lines:
                    try:
                        json.loads(line)
                    except ValueError:
                        broken += 1
            # One more line is the request that waited for the start.
            good = good and not broken and not raw and len(lines) == expected + 1
            seen.append(f"{log_format}: {len(lines) - 1} lines for {expected} requests, {broken} broken, {raw} with control characters")
    return "; ".join(seen), good


def is_raw(line, log_format):
    """Whether a terminal could take anything in it for a command; JSON may have UTF-8."""
    if log_format == "combined":
        return any(byte < 0x20 or byte >= 0x7F for byte in line)
    return any(ord(letter) < 0x20 or 0x7F <= ord(letter) <= 0x9F for letter in line.decode("utf-8", "surrogateescape"))


def log_full(kettle):
    """An access log that cannot be written: `/dev/full`"""
    with Server(kettle, access="/dev/full") as server:
        for _ in range(50):
            good = bool(server.serves())
        time.sleep(1.5)
        told = subprocess.run([kettle, "ctl", "--socket", str(server.folder / "admin.sock"), "status"], capture_output=True, text=True)
        lost = re.findall(r"(\d+) lines lost", told.stdout)
        return f"50 of 50 served; `ctl status`: {lost or 'no'} lines lost; {server.messages().count('ERROR') + server.messages().count('WARN')} messages", good and lost


def log_blocked(kettle):
    """An access log on a standard output that nobody reads, during 20,000 requests"""
    reader, writer = os.pipe()
    with Server(kettle, access="stdout", output=writer, limits="") as server:
        served = 0
        with server.connect(5) as client:
            try:
                for _ in range(200):
                    client.sendall(get("/none") * 100)
                    got = 0
                    while got < 100:
                        part = client.recv(1 << 16)
                        if not part:
                            break
                        got += part.count(b"HTTP/1.1 404")
                    served += got
            except OSError:
                pass
        fresh = server.serves()
        server.process.terminate()
        began = time.monotonic()
        ended = wait_until(lambda: server.process.poll() is not None, 8)
        took = time.monotonic() - began
        os.close(writer)
        os.close(reader)
        return (f"{served} answers of 20,000, new connections served: {bool(fresh)}; SIGTERM ends it: {ended} after {took:.1f} s"), served == 20000 and fresh and ended


def s_client(port, *options, data=b""):
    return subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", "localhost", *options],
                          input=data, capture_output=True, timeout=20).stdout.decode(errors="replace")


def take_ticket(server, path, *options):
    process = subprocess.Popen(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-servername", "localhost", "-sess_out", path, "-ign_eof", *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return process.communicate(get("/1k", "close"), timeout=20)[0]


def early_data(kettle):
    """Early data (0-RTT) with a fresh ticket"""
    with Server(kettle) as server:
        path, request = str(server.folder / "ticket"), server.folder / "request"
        request.write_bytes(get("/1k", "close"))
        take_ticket(server, path)
        text = s_client(server.port, "-sess_in", path, "-early_data", str(request))
        verdict = re.findall(r"Early data was [a-z ]+", text)
        return f"{verdict}", verdict in (["Early data was not sent"], ["Early data was rejected"])


def foreign_tickets(kettle):
    """Tickets of another start of the server, TLS 1.2 and 1.3: other keys, so a full handshake"""
    seen, good = [], True
    for version in ("-tls1_2", "-tls1_3"):
        with Server(kettle) as first, Server(kettle) as second:
            path = str(first.folder / "ticket")
            take_ticket(first, path, version)
            own = "Reused" in s_client(first.port, "-sess_in", path, version)
            foreign = "Reused" in s_client(second.port, "-sess_in", path, version)
            good = good and own and not foreign
            seen.append(f"{version[1:]}: resumed by its own server {own}, by another {foreign}")
    return "; ".join(seen), good


def broken_reloads(kettle):
    """300 reloads, every other one of a broken configuration, while clients ask"""
    with Server(kettle) as server:
        config, failed = server.folder / "kettle.toml", 0
        right = config.read_text()
        for number in range(300):
            config.write_text(right if number % 2 else right + "\n[[site]]\nnonsense = 1\n")
            os.kill(server.process.pid, signal.SIGHUP)
            failed += server.serves() is None
        refused = server.messages().count("not reloaded")
        return f"{failed} of 300 requests failed, {refused} reloads refused by name, {server.descriptors()} descriptors", not failed and refused > 50


ATTACKS = [log_injection, log_full, log_blocked, early_data, foreign_tickets, broken_reloads]
