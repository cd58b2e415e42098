//! A plain connection that only says where to find the same thing over HTTPS, on a listener for
//! that or by mistake on one that speaks HTTPS.

use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::{io, mem};

use kettle_config::{ListenerKind, PlainHttp};
use kettle_http::h1::parse::{Parse, Progress};
use kettle_http::{Limits, RequestHead};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::{Connection, LINGER};
use crate::answer::{Body, Response};
use crate::error_page;
use crate::limits::Stage;

impl Connection {
    /// Answers one request and closes: a client that is redirected goes elsewhere. `received` is what it said already.
    pub(super) async fn redirect(&self, mut socket: TcpStream, received: Vec<u8>) {
        let Some(response) = self.redirect_response(&mut socket, received).await else {
            return;
        };
        let mut bytes = response.head;
        if let Body::Memory(body) = &response.body {
            bytes.extend_from_slice(body);
        }
        let mut left = bytes.as_slice();
        let write_timeout = self.snapshot.config.limits.write_timeout;
        let sent = self
            .watch
            .within(write_timeout, |context| poll_write_all(&mut socket, &mut left, context))
            .await;
        if matches!(sent, Ok(Ok(())))
            && kettle_kernel::socket::shutdown_write(socket.as_fd()).is_ok()
        {
            let _ =
                self.watch.idle_within(LINGER, |context| poll_drain(&mut socket, context)).await;
        }
    }

    async fn redirect_response(
        &self,
        socket: &mut TcpStream,
        mut received: Vec<u8>,
    ) -> Option<Response> {
        let limits = &self.snapshot.config.limits;
        let head_limits = Limits {
            head_bytes_max: limits.head_bytes,
            headers_max: limits.headers,
            target_bytes_max: limits.target_bytes,
        };
        let mut progress = Progress::default();
        self.watch.extend(limits.request_timeout);
        loop {
            match progress.parse(&received, &head_limits) {
                Ok(Parse::Partial) => {}
                Ok(Parse::Complete { head, .. }) => return self.answer_plain(&head),
                Err(error) => {
                    return Some(error_page::respond(error.status(), self.worker.head_buffer()));
                }
            }
            let stage = if received.is_empty() { Stage::Idle } else { Stage::Begun };
            let read =
                self.watch.wait(stage, |context| poll_read(socket, &mut received, context)).await;
            if !matches!(read, Ok(Ok(1..))) {
                return None;
            }
        }
    }

    fn answer_plain(&self, head: &RequestHead<'_>) -> Option<Response> {
        let (listener, buffer) = (self.listener()?, self.worker.head_buffer());
        let answerer = &self.worker.answerer;
        // Behind a port that is forwarded only the client knows its number.
        let asked_port = head.authority().and_then(|authority| authority.port);
        let same_port = asked_port.unwrap_or(listener.address.value.port());
        Some(match (listener.kind, listener.plain_http) {
            (ListenerKind::RedirectToHttps, _) => {
                let (port, status) = (listener.redirect_port, listener.redirect_status);
                answerer.redirect(head, port, status, buffer)
            }
            (ListenerKind::Https, PlainHttp::Redirect) => {
                answerer.redirect(head, same_port, MISTAKEN_SCHEME_STATUS, buffer)
            }
            (ListenerKind::Https, PlainHttp::Refuse) => {
                answerer.refuse_plain_http(head, same_port, buffer)
            }
        })
    }
}

fn poll_read(
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

fn poll_write_all(
    socket: &mut TcpStream,
    left: &mut &[u8],
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while !left.is_empty() {
        let bytes = ready!(Pin::new(&mut *socket).poll_write(context, left))?;
        if bytes == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        *left = left.get(bytes..).unwrap_or_default();
    }
    Poll::Ready(Ok(()))
}

fn poll_drain(socket: &mut TcpStream, context: &mut Context<'_>) -> Poll<io::Result<()>> {
    let mut thrown_away = Vec::new();
    for _ in 0..DRAIN_READS_MAX {
        thrown_away.clear();
        if ready!(poll_read(socket, &mut thrown_away, context))? == 0 {
            return Poll::Ready(Ok(()));
        }
    }
    Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
}

const READ_BYTES: usize = 4_096;

/// Temporary: the port may speak something else one day. The method is kept (RFC 9110 §15.4.8).
const MISTAKEN_SCHEME_STATUS: u16 = 307;

/// A client that sends this much after its answer is cut off.
const DRAIN_READS_MAX: usize = 64;
