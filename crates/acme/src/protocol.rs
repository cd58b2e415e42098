//! The language of server and issuer: messages over a pair of nameless sockets, each one datagram of JSON.
//!
//! No name, path or URL that the server says leads anywhere: of sites it says the first name of one that the issuer's own configuration has.

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Read the configuration again.
    ReadAgain,
    /// Get a site a new certificate now.
    Renew {
        /// The number of the question.
        number: u64,
        /// The first name of the site.
        site: String,
        /// True if only the test directory is asked, and nothing changes.
        rehearse: bool,
    },
    /// Forget what is known of a site's order and failures.
    Forget {
        /// The number of the question.
        number: u64,
        /// The first name of the site.
        site: String,
    },
    /// Revoke a site's certificate, and get one with another key.
    Revoke {
        /// The number of the question.
        number: u64,
        /// The first name of the site.
        site: String,
        /// The reason's number in RFC 5280, if there is to be one.
        reason: Option<u8>,
    },
    /// A certificate that was issued is in force, as far as it can be.
    InForce {
        /// The first name of the site.
        site: String,
    },
    /// Say how it stands with the sites from this one on.
    Status {
        /// The number of the question.
        number: u64,
        /// The number of the first site.
        from: usize,
    },
    /// Say which records have to be in the DNS, from this one on.
    Records {
        /// The number of the question.
        number: u64,
        /// The number of the first record.
        from: usize,
    },
    /// The challenge that was asked to be presented can be seen by clients, or cannot.
    Presented {
        /// The number of the request.
        number: u64,
        /// Why not.
        refused: Option<String>,
    },
}

/// A message of the issuer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// It has begun, and knows of no challenge that may still be presented.
    Begun {
        /// True if it has the lock of the state folder.
        leads: bool,
    },
    /// It has ended. That is the warden's word.
    Ended,
    /// Answer a challenge.
    Present {
        /// The number of the request, which `Presented` has too.
        number: u64,
        /// By what.
        kind: Kind,
        /// The name or the address that is validated.
        name: String,
        /// The challenge's token.
        token: String,
        /// The answer to it.
        key_authorization: String,
    },
    /// Answer it no longer.
    Withdraw {
        /// As it was presented.
        kind: Kind,
        /// As it was presented.
        name: String,
        /// As it was presented.
        token: String,
    },
    /// A site has a new certificate in its folder.
    Issued {
        /// The first name of the site.
        site: String,
    },
    /// Something to be counted: the end of an order.
    Attempt {
        /// The name of the authority.
        authority: String,
        /// True if it led to a certificate.
        is_issued: bool,
        /// The kind of challenge, if names were validated.
        kind: Option<Kind>,
    },
    /// The state of some sites.
    Sites {
        /// The number of the question.
        number: u64,
        /// The number of sites there are.
        total: usize,
        /// The number of the first of these.
        from: usize,
        /// The sites.
        sites: Vec<SiteStatus>,
    },
    /// Some of the records that have to be in the DNS, as lines of a zone file.
    Records {
        /// The number of the question.
        number: u64,
        /// The lines.
        records: Vec<String>,
        /// The number of the first one that is not among these, if there is one.
        next: Option<usize>,
    },
    /// The answer to a question.
    Done {
        /// The number of the question.
        number: u64,
        /// The text to log.
        message: String,
        /// True if it was not done.
        is_refused: bool,
    },
    /// A line for the log.
    Log {
        /// The level of the message.
        level: Level,
        /// The line.
        text: String,
    },
}

/// By what a name is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A certificate in a handshake (RFC 8737).
    TlsAlpn,
    /// A file over HTTP (RFC 8555 §8.3).
    Http,
    /// A record in the DNS (RFC 8555 §8.4), which a program writes.
    Dns,
    /// A record that stays in the DNS (draft-ietf-acme-dns-persist-01), which the operator writes.
    DnsPersist,
}

/// The level of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Level {
    /// It is for those who look.
    Info,
    /// It should be looked at.
    Warn,
    /// A certificate is in danger.
    Error,
}

/// The state of a site's certificate. Moments are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteStatus {
    /// The first name of the site.
    pub site: String,
    /// The authority that issued the certificate, or that is asked.
    pub authority: String,
    /// When the certificate ends.
    pub not_after: Option<u64>,
    /// When something is done next.
    pub next: u64,
    /// The next step, in a word: `renewal`, `retry`, `order`.
    pub what: String,
    /// Failures since the last success.
    pub failures: u32,
    /// The last failure.
    pub reason: Option<String>,
    /// True if it is late.
    pub is_urgent: bool,
    /// Names that have not validated for a day, so that it is ordered without them.
    pub left_out: Vec<LeftOut>,
}

/// The next step where another server has the lock of the state folder: nothing here.
pub const OF_ANOTHER_SERVER: &str = "another server";

/// A name that a certificate is ordered without.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The name.
    pub name: String,
    /// Why it does not validate.
    pub reason: String,
}

impl Kind {
    /// As RFCs write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TlsAlpn => "tls-alpn-01",
            Self::Http => "http-01",
            Self::Dns => "dns-01",
            Self::DnsPersist => "dns-persist-01",
        }
    }
}

/// One end of the pair.
#[derive(Debug)]
pub struct End(Datagrams);

impl End {
    /// An end, whose socket waits for nobody from now on.
    ///
    /// # Errors
    /// If the runtime cannot watch it.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self(Datagrams::new(socket)?))
    }

    /// Sends a message, and waits for room.
    ///
    /// # Errors
    /// If nobody is at the other end, or the message is too long.
    pub async fn send(&self, message: &impl Serialize) -> io::Result<()> {
        self.0.send_bytes(&encode(message)?).await
    }

    /// Sends a message, if there is room.
    ///
    /// # Errors
    /// If there is none, nobody is at the other end, or the message is too long.
    pub fn try_send(&self, message: &impl Serialize) -> io::Result<()> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        send(self.0.0.get_ref().as_fd(), &encode(message)?, flags)?;
        Ok(())
    }

    /// The next message. Dropping this loses none.
    ///
    /// # Errors
    /// If nobody is at the other end any more, or what comes is no message.
    pub async fn receive<M: DeserializeOwned>(&self) -> io::Result<M> {
        Ok(serde_json::from_slice(&self.0.receive_bytes().await?)?)
    }
}

/// Questions over a pair, each question with a number that its answer has, too.
pub(crate) struct Questions<A> {
    waiting: RefCell<HashMap<u64, oneshot::Sender<A>>>,
    number: Cell<u64>,
}

impl<A> Default for Questions<A> {
    fn default() -> Self {
        Self { waiting: RefCell::default(), number: Cell::new(0) }
    }
}

impl<A> Questions<A> {
    /// Has a question of a new number sent, and waits for its answer; none if it does not come in time.
    pub(crate) async fn ask(
        &self,
        send: impl AsyncFnOnce(u64) -> io::Result<()>,
        time_max: Duration,
    ) -> io::Result<Option<A>> {
        let number = self.number.get().wrapping_add(1);
        self.number.set(number);
        let (asker, answer) = oneshot::channel();
        self.waiting.borrow_mut().insert(number, asker);
        let asked = async {
            send(number).await?;
            answer.await.map_err(io::Error::other)
        };
        let answer = timeout(time_max, asked).await;
        self.waiting.borrow_mut().remove(&number);
        answer.map_or(Ok(None), |answer| answer.map(Some))
    }

    /// Takes the answer to the question of this number.
    pub(crate) fn answer(&self, number: u64, answer: A) {
        if let Some(asker) = self.waiting.borrow_mut().remove(&number) {
            // An order that was given up waits no longer.
            let _ = asker.send(answer);
        }
    }
}

/// One end of a pair of sockets for messages of bytes.
#[derive(Debug)]
pub(crate) struct Datagrams(AsyncFd<OwnedFd>);

impl Datagrams {
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self(watched(socket)?))
    }

    pub(crate) async fn send_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        self.0
            .async_io(Interest::WRITABLE, |socket| {
                Ok(send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?)
            })
            .await?;
        Ok(())
    }

    pub(crate) async fn receive_bytes(&self) -> io::Result<Vec<u8>> {
        let mut room = vec![0; MESSAGE_BYTES_MAX];
        let length = self
            .0
            .async_io(Interest::READABLE, |socket| {
                match recv(socket, &mut *room, RecvFlags::DONTWAIT) {
                    Ok((_, length)) => Ok(length),
                    Err(Errno::INTR) => Err(io::ErrorKind::WouldBlock.into()),
                    Err(error) => Err(error.into()),
                }
            })
            .await?;
        // Nothing at all is the end.
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        room.truncate(length);
        Ok(room)
    }
}

#[allow(
    deprecated,
    reason = "sound with a descriptor that is owned; its successor is `unsafe` because of types whose descriptor may change"
)]
fn watched(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(socket)
}

fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(bytes)
}

/// Sites in one message.
pub const SITES_MAX: usize = 32;

/// The longest reason that is passed on: problem documents are as long as their authority likes.
pub const REASON_BYTES_MAX: usize = 1_500;

const MESSAGE_BYTES_MAX: usize = 96 << 10;
