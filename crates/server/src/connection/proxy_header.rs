//! A PROXY header in front of a connection: for whom a load balancer speaks.
//!
//! A wrong header gets no answer: that is a load balancer with other settings, or somebody who would like to
//! be one.

use std::time::Duration;

use kettle_preamble::proxy::{Header, Parse, ProxyError, has_signature, parse};
use kettle_runtime::client_address::ClientAddress;
use kettle_runtime::deadlines::Interrupt;
use tokio::net::TcpStream;

use super::Connection;
use super::plain::poll_read;

impl Connection {
    /// Reads the header of a trusted peer; the client it names is then this connection's. From others there may be none.
    /// Returns what was received behind it, or `None` if the connection must close.
    pub(super) async fn read_proxy_header(&mut self, socket: &mut TcpStream) -> Option<Vec<u8>> {
        let peer = self.remote.host().ip();
        let is_trusted = self.listener().is_some_and(|listener| listener.accept_proxy.has(peer));
        let time = if is_trusted { PROXY_HEADER_TIMEOUT } else { self.handshake_time_left() };
        self.deadline.extend(time);
        let mut received = Vec::new();
        let outcome = loop {
            match parse(&received) {
                Ok(Parse::Partial { .. }) => {}
                Ok(Parse::Complete { header, bytes }) if is_trusted => {
                    self.take_client(&header);
                    received.drain(..bytes);
                    return Some(received);
                }
                Ok(Parse::Complete { .. }) => break "stranger",
                Err(ProxyError::Missing) if !is_trusted => return Some(received),
                Err(error) => break error.reason(),
            }
            let stage = self.stage(&received);
            let read = self
                .deadline
                .wait(stage, |context| poll_read(socket, &mut received, context))
                .await;
            match read {
                Ok(Ok(1..)) => {}
                // It began as a header may, and said nothing of one.
                Ok(Ok(0)) | Err(Interrupt::Expired) if !is_trusted && !has_signature(&received) => {
                    return Some(received);
                }
                Ok(_) => break "closed",
                Err(interrupt) => break interrupt.as_str(),
            }
        };
        tracing::debug!(remote = %self.remote, outcome, "no connection without a good PROXY header");
        self.worker.metrics.proxy_header("none", outcome);
        None
    }

    fn take_client(&mut self, header: &Header<'_>) {
        let client = header.endpoints.client();
        self.destination = header.endpoints.destination();
        self.proxy_header = Some(header.version);
        let outcome = if client.is_some() { "client" } else { "own" };
        self.worker.metrics.proxy_header(header.version.as_str(), outcome);
        self.remote = client.map_or(self.remote, ClientAddress::Ip);
    }
}

/// A load balancer says its header at once.
const PROXY_HEADER_TIMEOUT: Duration = Duration::from_secs(3);
