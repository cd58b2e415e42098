//! `setsockopt` and `getsockopt` on plain bytes, for the options no library wraps.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets one socket option to the given bytes.
pub(crate) fn set(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &[u8],
) -> io::Result<()> {
    let length = length_of(value.len())?;
    // SAFETY: the pointer and length describe `value`, which outlives the call; the kernel only reads it.
    let status =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), length) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads one socket option into `value` and returns how many bytes the kernel wrote.
pub(crate) fn get(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut [u8],
) -> io::Result<usize> {
    let mut length = length_of(value.len())?;
    let bytes = value.as_mut_ptr().cast();
    // SAFETY: the pointer and length describe `value`, which nobody else can reach; the kernel writes at most `length`.
    let status = unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, bytes, &raw mut length) };
    if status == 0 {
        Ok((length as usize).min(value.len()))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads one option whose value is a C `int`.
pub(crate) fn get_int(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<libc::c_int> {
    let mut value = [0_u8; size_of::<libc::c_int>()];
    if get(fd, level, name, &mut value)? != value.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "socket option is not an int"));
    }
    Ok(libc::c_int::from_ne_bytes(value))
}

fn length_of(bytes: usize) -> io::Result<libc::socklen_t> {
    libc::socklen_t::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput.into())
}
