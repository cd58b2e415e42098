//! Records that are not application data, on a kernel TLS socket: their type travels in a control message.

#[cfg(test)]
mod tests;

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The content type of alerts (RFC 8446, section 5.1).
pub const ALERT: u8 = 21;
/// The content type of handshake messages.
pub const HANDSHAKE: u8 = 22;
/// The content type of application data.
pub const APPLICATION_DATA: u8 = 23;

/// Sends one record of the given type without waiting. It also ends a record that `MSG_MORE` left open.
///
/// A socket without keys ignores the type and sends the bytes as they are: only call it after `ktls::install`.
///
/// # Errors
/// The error of sendmsg(2): `WouldBlock` if the socket has no room.
pub fn send(fd: BorrowedFd<'_>, content_type: u8, payload: &[u8]) -> io::Result<usize> {
    let mut control = RecordType::new(libc::TLS_SET_RECORD_TYPE, content_type);
    // The kernel only reads through this pointer; `msghdr` has no const form.
    let mut buffer = io_vector(payload.as_ptr().cast_mut(), payload.len());
    let mut message = message_header(&mut buffer, &mut control);
    // The padding behind the one byte must not be announced: CMSG_LEN, not CMSG_SPACE.
    message.msg_controllen = CONTROL_BYTES as _;
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: `message` points to `buffer`, `payload` and `control`, which all outlive the call and are only read by it.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives bytes of one record without waiting, with the record's type. A record longer than the buffer continues in
/// the next call with the same type. `(APPLICATION_DATA, 0)` is the end of the stream.
///
/// # Errors
/// The error of recvmsg(2): `WouldBlock` if the socket has nothing.
pub fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(u8, usize)> {
    let mut control = RecordType::new(0, 0);
    let mut vector = io_vector(buffer.as_mut_ptr(), buffer.len());
    let mut message = message_header(&mut vector, &mut control);
    // SAFETY: `message` points to `vector`, `buffer` and `control`, which all outlive the call and which only we can reach.
    let received = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let bytes = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "truncated control message"));
    }
    #[allow(clippy::unnecessary_cast, reason = "the field has 32 bits in musl")]
    let control_bytes = message.msg_controllen as usize;
    let announced = control_bytes >= CONTROL_BYTES
        && control.level == libc::SOL_TLS
        && control.kind == libc::TLS_GET_RECORD_TYPE;
    match (announced, bytes) {
        (true, _) => Ok((control.content_type, bytes)),
        (false, 0) => Ok((APPLICATION_DATA, 0)),
        // Only a socket without TLS_RX answers so: the bytes are ciphertext and must not pass for data.
        (false, _) => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "bytes without a TLS record type"))
        }
    }
}

/// One control message with a one-byte payload: `struct cmsghdr`, the byte, and padding to the next header.
#[repr(C)]
struct RecordType {
    length: usize,
    level: libc::c_int,
    kind: libc::c_int,
    content_type: u8,
    padding: [u8; size_of::<usize>() - 1],
}

impl RecordType {
    fn new(kind: libc::c_int, content_type: u8) -> Self {
        Self {
            length: CONTROL_BYTES,
            level: libc::SOL_TLS,
            kind,
            content_type,
            padding: [0; size_of::<usize>() - 1],
        }
    }
}

fn io_vector(base: *mut u8, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: base.cast(), iov_len: bytes }
}

fn message_header(buffer: &mut libc::iovec, control: &mut RecordType) -> libc::msghdr {
    // SAFETY: `msghdr` is a C structure of integers and pointers, for which all zeroes is a valid value. A literal is
    // not possible: musl's has private padding.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = buffer;
    message.msg_iovlen = 1;
    message.msg_control = std::ptr::from_mut(control).cast();
    message.msg_controllen = size_of::<RecordType>() as _;
    message
}

/// `CMSG_LEN(1)`.
const CONTROL_BYTES: usize = size_of::<libc::cmsghdr>() + 1;

const _: () = {
    assert!(offset_of!(RecordType, level) == offset_of!(libc::cmsghdr, cmsg_level));
    assert!(offset_of!(RecordType, kind) == offset_of!(libc::cmsghdr, cmsg_type));
    assert!(offset_of!(RecordType, content_type) == size_of::<libc::cmsghdr>());
    assert!(align_of::<RecordType>() >= align_of::<libc::cmsghdr>());
    // SAFETY: these are plain arithmetic on their argument.
    assert!(unsafe { libc::CMSG_SPACE(1) } as usize == size_of::<RecordType>());
    // SAFETY: as above.
    assert!(unsafe { libc::CMSG_LEN(1) } as usize == CONTROL_BYTES);
};
