"""A TLS 1.3 client that seals records no honest client would send.

Python's ssl makes the handshake and logs its secret; from then on records are made here.
"""

import hashlib
import hmac
import os
import socket
import ssl
import tempfile

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from server import context

APPLICATION_DATA, ALERT, HANDSHAKE, CHANGE_CIPHER_SPEC, HEARTBEAT = 23, 21, 22, 20, 24


class RecordClient:
    VERSION = ssl.TLSVersion.TLSv1_3

    def __init__(self, port, timeout=10):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls = context(self.VERSION)
        tls.set_ciphers("ECDHE+AESGCM")
        handle, keylog = tempfile.mkstemp()
        os.close(handle)
        tls.keylog_filename = keylog
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = tls.wrap_bio(incoming, outgoing, server_hostname="localhost")
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.socket.sendall(outgoing.read())
                flight = self.socket.recv(1 << 16)
                # Of the ServerHello, the first message to come: record head 5, message head 4, version 2.
                self.server_random = getattr(self, "server_random", flight[11:43])
                incoming.write(flight)
        self.socket.sendall(outgoing.read())
        self.suite = session.cipher()[0]
        self.digest = hashlib.sha384 if "SHA384" in self.suite else hashlib.sha256
        with open(keylog) as lines:
            secrets = {line.split()[0]: bytes.fromhex(line.split()[2]) for line in lines if line[0] != "#"}
        with open(keylog) as lines:
            self.client_random = next(bytes.fromhex(line.split()[1]) for line in lines if line[0] != "#")
        os.unlink(keylog)
        # Records of the server that came with the handshake are still in the BIO.
        self.left = b""
        while incoming.pending:
            self.left += incoming.read()
        self.take_keys(secrets)

    def take_keys(self, secrets):
        self.secret = secrets["CLIENT_TRAFFIC_SECRET_0"]
        self.peer_secret = secrets["SERVER_TRAFFIC_SECRET_0"]
        self.peer_sequence = 0
        self.install()

    def install(self):
        self.sequence = 0
        self.aead, self.iv = self.protection(self.secret)

    def protection(self, secret):
        key_bytes = 32 if "256" in self.suite.split("_SHA")[0] or "CHACHA" in self.suite else 16
        kind = ChaCha20Poly1305 if "CHACHA" in self.suite else AESGCM
        return kind(self.expand(secret, b"key", key_bytes)), self.expand(secret, b"iv", 12)

    def expand(self, secret, label, length):
        label = b"tls13 " + label
        info = length.to_bytes(2, "big") + bytes([len(label)]) + label + b"\0"
        return hmac.new(secret, info + b"\1", self.digest).digest()[:length]

    def seal(self, content_type, content=b"", padding=0):
        inner = content + bytes([content_type]) + b"\0" * padding
        head = bytes([23, 3, 3]) + (len(inner) + 16).to_bytes(2, "big")
        nonce = bytes(a ^ b for a, b in zip(self.iv, self.sequence.to_bytes(12, "big")))
        self.sequence += 1
        return head + self.aead.encrypt(nonce, inner, head)

    def send(self, content_type, content=b"", padding=0):
        self.socket.sendall(self.seal(content_type, content, padding))

    def key_update(self, requested=False):
        record = self.seal(HANDSHAKE, b"\x18\0\0\1" + bytes([requested]))
        self.secret = self.expand(self.secret, b"traffic upd", self.digest().digest_size)
        self.install()
        return record

    def received(self):
        """Everything until the end of the connection as (type, content) pairs."""
        data = self.left
        try:
            while part := self.socket.recv(1 << 16):
                data += part
        except OSError:
            pass
        aead, iv = self.protection(self.peer_secret)
        pairs = []
        while len(data) >= 5 and len(data) >= 5 + int.from_bytes(data[3:5], "big"):
            end = 5 + int.from_bytes(data[3:5], "big")
            nonce = bytes(a ^ b for a, b in zip(iv, self.peer_sequence.to_bytes(12, "big")))
            try:
                inner = aead.decrypt(nonce, data[5:end], data[:5]).rstrip(b"\0")
            except Exception:
                pairs.append(("undecryptable", data[:5]))
                break
            self.peer_sequence += 1
            content_type, content = inner[-1], inner[:-1]
            pairs.append((content_type, content))
            if content_type == HANDSHAKE and content[:1] == b"\x18":
                self.peer_secret = self.expand(self.peer_secret, b"traffic upd", self.digest().digest_size)
                aead, iv = self.protection(self.peer_secret)
                self.peer_sequence = 0
            data = data[end:]
        return pairs

    def ending(self):
        """How the server ended it: the alerts it sent, after how many bytes of data."""
        pairs = self.received()
        alerts = [content[1] if len(content) > 1 else None for kind, content in pairs if kind == ALERT]
        data = sum(len(content) for kind, content in pairs if kind == APPLICATION_DATA)
        odd = [kind for kind, _ in pairs if kind == "undecryptable"]
        return alerts + odd, data


class RecordClient12(RecordClient):
    """The same for TLS 1.2 with AES-GCM: other keys, other nonces, the length in the associated data."""

    VERSION = ssl.TLSVersion.TLSv1_2

    def take_keys(self, secrets):
        key_bytes = 32 if "AES256" in self.suite else 16
        seed = b"key expansion" + self.server_random + self.client_random
        block, link = b"", seed
        while len(block) < 2 * key_bytes + 8:
            link = hmac.new(secrets["CLIENT_RANDOM"], link, self.digest).digest()
            block += hmac.new(secrets["CLIENT_RANDOM"], link + seed, self.digest).digest()
        self.aead, self.peer_aead = AESGCM(block[:key_bytes]), AESGCM(block[key_bytes:2 * key_bytes])
        self.salt, self.peer_salt = block[2 * key_bytes:][:4], block[2 * key_bytes + 4:][:4]
        # Both sides' Finished had number 0.
        self.sequence = self.peer_sequence = 1

    def seal(self, content_type, content=b"", padding=0):
        number = self.sequence.to_bytes(8, "big")
        self.sequence += 1
        bound = number + bytes([content_type, 3, 3]) + len(content).to_bytes(2, "big")
        sealed = number + self.aead.encrypt(self.salt + number, content, bound)
        return bytes([content_type, 3, 3]) + len(sealed).to_bytes(2, "big") + sealed

    def received(self):
        data, pairs = self.left, []
        try:
            while part := self.socket.recv(1 << 16):
                data += part
        except OSError:
            pass
        while len(data) >= 5 and len(data) >= 5 + int.from_bytes(data[3:5], "big"):
            end = 5 + int.from_bytes(data[3:5], "big")
            bound = self.peer_sequence.to_bytes(8, "big") + data[:3] + (end - 5 - 24).to_bytes(2, "big")
            self.peer_sequence += 1
            pairs.append((data[0], self.peer_aead.decrypt(self.peer_salt + data[5:13], data[13:end], bound)))
            data = data[end:]
        return pairs
