//! Which network cards can encrypt TLS records themselves, asked of the kernel over generic netlink (the `ethtool` family,
//! Linux 5.7). Only reading; needs no privilege.

mod message;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use message::{Message, Request, attributes, text};

/// The answers of a card about one offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// The card or its driver cannot.
    Unsupported,
    /// It can and is switched off.
    Off,
    /// It can and is switched on.
    On,
}

/// One network interface and its TLS offloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkCard {
    /// The interface's name, such as `eth0`.
    pub name: String,
    /// `tls-hw-tx-offload`: the card encrypts what is sent.
    pub tls_tx: Offload,
    /// `tls-hw-rx-offload`: the card decrypts what is received.
    pub tls_rx: Offload,
}

/// Every network interface of this namespace with its TLS offloads.
///
/// # Errors
/// If the kernel does not answer by netlink, or knows no `ethtool` there (before Linux 5.6).
pub fn network_cards() -> io::Result<Vec<NetworkCard>> {
    let socket = open()?;
    let mut family = None;
    let by_name = Request::new(message::CONTROL_FAMILY, message::CONTROL_GET_FAMILY)
        .with_text(message::CONTROL_FAMILY_NAME, "ethtool");
    exchange(&socket, &by_name, |reply| {
        let id = attributes(reply).find(|(kind, _)| *kind == message::CONTROL_FAMILY_ID);
        family = id.and_then(|(_, value)| value.first_chunk()).map(|id| u16::from_ne_bytes(*id));
    })?;
    let family = family.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    let mut cards = Vec::new();
    let features = Request::new(family, message::FEATURES_GET)
        .with_empty_nest(message::FEATURES_HEADER)
        .for_all();
    exchange(&socket, &features, |reply| cards.extend(card_in(reply)))?;
    Ok(cards)
}

fn open() -> io::Result<OwnedFd> {
    let family = AddressFamily::NETLINK;
    let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(GENERIC))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(WAIT_MAX))?;
    Ok(socket)
}

/// Sends one request and hands the attributes of each reply to `on_reply`.
fn exchange(
    socket: &OwnedFd,
    request: &Request,
    mut on_reply: impl FnMut(&[u8]),
) -> io::Result<()> {
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(socket, request.bytes(), SendFlags::empty(), &kernel)?;
    let mut buffer = vec![0_u8; REPLY_BYTES_MAX];
    for _ in 0..DATAGRAMS_MAX {
        let (bytes, _) = recv(socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        for received in message::messages(buffer.get(..bytes).unwrap_or_default()) {
            match received {
                Message::Reply(content) => on_reply(content),
                Message::Error(errno) => return Err(io::Error::from_raw_os_error(errno)),
                Message::Done => return Ok(()),
            }
        }
        if !request.is_for_all() {
            return Ok(());
        }
    }
    Err(io::Error::other("the kernel lists too many network interfaces"))
}

fn card_in(reply: &[u8]) -> Option<NetworkCard> {
    let find = |wanted| attributes(reply).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let header = find(message::FEATURES_HEADER)?;
    let (_, name) = attributes(header).find(|(kind, _)| *kind == message::HEADER_DEVICE_NAME)?;
    let changeable = find(message::FEATURES_CHANGEABLE).unwrap_or_default();
    let active = find(message::FEATURES_ACTIVE).unwrap_or_default();
    let offload = |feature| match (has_bit(active, feature), has_bit(changeable, feature)) {
        (true, _) => Offload::On,
        (false, true) => Offload::Off,
        (false, false) => Offload::Unsupported,
    };
    Some(NetworkCard {
        name: text(name),
        tls_tx: offload("tls-hw-tx-offload"),
        tls_rx: offload("tls-hw-rx-offload"),
    })
}

/// True if a verbose bitset has this bit set. With a mask it lists every bit and flags those that are set; without one it
/// lists only those.
fn has_bit(bitset: &[u8], wanted: &str) -> bool {
    let lists_only_set = attributes(bitset).any(|(kind, _)| kind == message::BITSET_NO_MASK);
    attributes(bitset)
        .filter(|(kind, _)| *kind == message::BITSET_BITS)
        .flat_map(|(_, bits)| attributes(bits))
        .filter(|(_, bit)| {
            attributes(bit).any(|(kind, name)| kind == message::BIT_NAME && text(name) == wanted)
        })
        .any(|(_, bit)| {
            lists_only_set || attributes(bit).any(|(kind, _)| kind == message::BIT_VALUE)
        })
}

const WAIT_MAX: Duration = Duration::from_secs(2);
/// The kernel fits its dump to the reader's buffer, up to 32 KiB; one interface takes about 8.
const REPLY_BYTES_MAX: usize = 32 * 1024;
const DATAGRAMS_MAX: usize = 4096;
