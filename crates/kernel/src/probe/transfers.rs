//! sendfile and splice into a kernel TLS socket, checked by the records they leave on the wire.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{ProbeOutcome, loopback, suite};
use crate::ktls::{Cipher, Version};
use crate::{record, transfer};

pub(super) fn sendfile(version: Version, cipher: Cipher) -> ProbeOutcome {
    let (sender, receiver) = suite::sending_pair(version, cipher)?;
    let file = file_with_body().map_err(|error| format!("a file in memory: {error}"))?;
    let mut offset = 0;
    let sent = transfer::sendfile(sender.as_fd(), file.as_fd(), &mut offset, BODY_BYTES)
        .map_err(|error| format!("sendfile: {error}"))?;
    expect_body(&receiver, sent, version, cipher)
}

pub(super) fn splice(version: Version, cipher: Cipher) -> ProbeOutcome {
    let (sender, receiver) = suite::sending_pair(version, cipher)?;
    let sent = through_pipe(sender.as_fd()).map_err(|error| format!("splice: {error}"))?;
    expect_body(&receiver, sent, version, cipher)
}

fn through_pipe(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let written = rustix::io::write(&writer, &[BODY_BYTE; BODY_BYTES])?;
    transfer::splice(reader.as_fd(), socket, written, false)
}

fn file_with_body() -> io::Result<std::os::fd::OwnedFd> {
    let file = memfd_create("kettle-probe", MemfdFlags::CLOEXEC)?;
    rustix::io::pwrite(&file, &[BODY_BYTE; BODY_BYTES], 0)?;
    Ok(file)
}

fn expect_body(
    receiver: &TcpStream,
    sent: usize,
    version: Version,
    cipher: Cipher,
) -> ProbeOutcome {
    if sent != BODY_BYTES {
        return Err(format!("{sent} bytes were taken instead of {BODY_BYTES}"));
    }
    let overhead = suite::overhead_bytes(version, cipher);
    let mut seen = 0;
    while seen < BODY_BYTES {
        let found = loopback::read_wire_record(receiver)
            .map_err(|error| format!("on the wire after {seen} bytes: {error}"))?;
        let payload = found.fragment.len().saturating_sub(overhead);
        if found.content_type != record::APPLICATION_DATA || payload == 0 {
            return Err("a record on the wire has the wrong shape".to_owned());
        }
        if found.fragment.windows(16).any(|window| window == [BODY_BYTE; 16]) {
            return Err("a record on the wire is not encrypted".to_owned());
        }
        seen += payload;
    }
    if seen == BODY_BYTES { Ok(()) } else { Err(format!("{seen} bytes arrived")) }
}

/// More than one record, less than a pipe and a socket buffer hold.
const BODY_BYTES: usize = 40_000;
const BODY_BYTE: u8 = b'k';
