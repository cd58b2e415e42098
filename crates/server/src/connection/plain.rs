//! A plain connection that only says where to find the same thing over HTTPS, on a listener for
//! that or by mistake on one that speaks HTTPS.

use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{io, mem};

use kettle_config::{ListenerKind, PlainHttp};
use kettle_exchange::error_page;
use kettle_exchange::request::Head;
use kettle_exchange::response::{Body, Edge, Response, write_head};
use kettle_handlers::fixed;
use kettle_handlers::redirect::Redirect;
use kettle_http::Method;
use kettle_http::h1::parse::{HeadProgress, ParseRequest};
use kettle_kernel::bug;
use kettle_tls::stream::Received;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::http1::is_head;
use super::log::RequestStart;
use super::{Connection, LINGER};
use crate::deliver::Delivered;

impl Connection {
    /// Answers one request and closes: a client that is redirected goes elsewhere. `received` is what it said already.
    pub(super) async fn plain(&self, mut socket: TcpStream, received: Vec<u8>) {
        let answered = self.plain_response(&mut socket, received).await;
        let Some((head, is_head, mut response)) = answered else { return };
        let start = RequestStart::now(1, self.client(head.as_ref(), 1));
        let date_line = self.worker.date_line();
        let version = head.as_ref().map(Head::version);
        let closes = true;
        let begins_tunnel = false;
        let edge = Edge { date_line, version, is_head, is_tls: false, closes, begins_tunnel };
        let mut bytes = Vec::new();
        write_head(&mut bytes, &mut response, &edge);
        let head_bytes = bytes.len();
        if let Body::Memory(body) = &response.body {
            bytes.extend_from_slice(body);
        }
        let limit = self.snapshot.served.config.limits.write_timeout;
        let said_bytes = self.say(&mut socket, &bytes, limit).await;
        let completed = said_bytes == bytes.len();
        let body_bytes = said_bytes.saturating_sub(head_bytes) as u64;
        let delivered = Delivered { body_bytes, completed, ..Delivered::NOTHING.in_plain() };
        self.log(None, head.as_ref(), response.logged(), said_bytes as u64, &delivered, &start);
        drop((head, response, bytes));
        if completed {
            self.hear_out(socket).await;
        }
    }

    /// Says a last word without TLS.
    pub(super) async fn say_last(&self, mut socket: TcpStream, word: &[u8], limit: Duration) {
        if self.say(&mut socket, word, limit).await == word.len() {
            self.hear_out(socket).await;
        }
    }

    /// Returns how much of a word could be said.
    async fn say(&self, socket: &mut TcpStream, word: &[u8], limit: Duration) -> usize {
        let mut left = word;
        let say = |context: &mut Context<'_>| poll_write_all(socket, &mut left, context);
        // The rest says it.
        let _ = self.deadline.within(limit, say).await;
        word.len() - left.len()
    }

    /// Closing with bytes unread would reset the connection, and could take the last word from the client.
    async fn hear_out(&self, mut socket: TcpStream) {
        if kettle_kernel::socket::shutdown_write(socket.as_fd()).is_ok() {
            let _ =
                self.deadline.idle_within(LINGER, |context| poll_drain(&mut socket, context)).await;
        }
    }

    /// Reads a request and answers it, or what is none. Beside the response: the request's head, and whether it is a HEAD.
    async fn plain_response(
        &self,
        socket: &mut TcpStream,
        mut received: Vec<u8>,
    ) -> Option<(Option<Head>, bool, Response)> {
        let head_limits = self.head_limits();
        let mut progress = HeadProgress::default();
        self.deadline.extend(self.snapshot.served.config.limits.request_timeout);
        let head = loop {
            match progress.parse(&received, &head_limits) {
                Ok(ParseRequest::Partial) => {}
                Ok(ParseRequest::Complete { head, .. }) => break head.moved_to(()),
                Err(error) => {
                    let id = self.client(None, 1).request_id;
                    let page = error_page::plain(&error.status().into(), &id);
                    return Some((None, is_head(&received), page));
                }
            }
            let stage = self.stage(&received);
            let read = self
                .deadline
                .wait(stage, |context| poll_read(socket, &mut received, context))
                .await;
            if !matches!(read, Ok(Ok(1..))) {
                return None;
            }
        };
        let head = head.moved_to(Received::from(received));
        let id = self.client(Some(&head), 1).request_id;
        let response = match self.challenge(&head) {
            Some(response) => response,
            None => {
                let response = self.redirect_for(&head)?.respond(&head, &id);
                response.unwrap_or_else(|error| error_page::plain(&error, &id))
            }
        };
        let is_head = head.method() == Method::Head;
        Some((Some(head), is_head, response))
    }

    /// Returns the answer to an authority, on a listener that only redirects.
    fn challenge(&self, head: &Head) -> Option<Response> {
        let is_redirect = matches!(self.listener()?.kind, ListenerKind::Redirect(_));
        fixed::challenge(self.snapshot.served.challenges.as_ref().filter(|_| is_redirect)?, head)
    }

    fn redirect_for(&self, head: &Head) -> Option<Redirect> {
        let listener = self.listener()?;
        // Behind a port that is forwarded only the client knows its number, and nobody else does behind a Unix socket.
        let asked_port = head.authority().and_then(|authority| authority.port);
        let same_port = asked_port.or(listener.address.port()).unwrap_or(HTTPS_PORT);
        Some(match &listener.kind {
            ListenerKind::Redirect(to) => {
                Redirect { https_port: to.redirect_port, status: Some(to.redirect_status) }
            }
            ListenerKind::Https(https) => Redirect {
                https_port: same_port,
                status: match https.plain_http {
                    PlainHttp::Redirect => Some(MISTAKEN_SCHEME_STATUS),
                    PlainHttp::Refuse => None,
                },
            },
            ListenerKind::Http(_)
            | ListenerKind::Tls(_)
            | ListenerKind::Tcp(_)
            | ListenerKind::Passthrough(_) => return None,
        })
    }
}

/// Reads some more behind what was received.
pub(super) fn poll_read(
    socket: &mut TcpStream,
    received: &mut Vec<u8>,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut room = [mem::MaybeUninit::uninit(); READ_BYTES];
    let mut buffer = ReadBuf::uninit(&mut room);
    ready!(Pin::new(socket).poll_read(context, &mut buffer))?;
    received.extend_from_slice(buffer.filled());
    Poll::Ready(Ok(buffer.filled().len()))
}

pub(super) fn poll_write_all(
    socket: &mut TcpStream,
    left: &mut &[u8],
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while !left.is_empty() {
        let bytes = ready!(Pin::new(&mut *socket).poll_write(context, left))?;
        if bytes == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        let rest = left.get(bytes..);
        *left = rest.ok_or_else(|| bug!("no more is written than there is"))?;
    }
    Poll::Ready(Ok(()))
}

/// Reads past what a peer says until it ends.
pub(super) fn poll_drain(
    socket: &mut TcpStream,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let mut thrown_away = Vec::new();
    for _ in 0..DRAIN_READS_MAX {
        thrown_away.clear();
        if ready!(poll_read(socket, &mut thrown_away, context))? == 0 {
            return Poll::Ready(Ok(()));
        }
    }
    context.waker().wake_by_ref();
    Poll::Pending
}

const READ_BYTES: usize = 4_096;

/// The port of a URL without one (RFC 9110 §4.2.2).
const HTTPS_PORT: u16 = 443;

/// Temporary: the port may speak something else one day. The method is kept (RFC 9110 §15.4.8).
const MISTAKEN_SCHEME_STATUS: u16 = 307;

/// The reads of it before others have a turn.
const DRAIN_READS_MAX: usize = 64;
