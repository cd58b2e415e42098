//! The dialogue before TLS, as the server: until a client asks for TLS, or breaks the protocol.

use std::os::fd::AsFd;
use std::task::Context;

use kettle_config::StartTls;
use kettle_kernel::process::hostname;
use kettle_kernel::socket::shutdown_write;
use kettle_preamble::starttls::lines::LineServer;
use kettle_preamble::starttls::{Dialogue, Next, postgres, smtp};
use kettle_runtime::deadlines::Stage;
use tokio::net::TcpStream;

use super::plain::{poll_drain, poll_read, poll_write_all};
use super::{Connection, LINGER};
use crate::tunnel::line_protocol;

impl Connection {
    /// Answers until TLS begins. Returns what was received of it already, or `None` if it does not come to that.
    pub(super) async fn answer_starttls(
        &self,
        socket: &mut TcpStream,
        received: Vec<u8>,
        protocol: StartTls,
    ) -> Option<Vec<u8>> {
        let mut dialogue: Box<dyn Dialogue> = match protocol {
            StartTls::Smtp => Box::new(smtp::Server::new(&hostname())),
            StartTls::Postgres => Box::new(postgres::Server::default()),
            other => match line_protocol(other) {
                Some(protocol) => Box::new(LineServer::new(protocol)),
                None => return Some(received),
            },
        };
        self.deadline.extend(self.handshake_time_left());
        let reason = match self.converse(socket, received, &mut *dialogue).await {
            Ok(begun) => return Some(begun),
            Err(reason) => reason,
        };
        tracing::debug!(remote = %self.remote, reason, "no TLS behind the dialogue before it");
        self.worker.metrics.handshake_failed(reason);
        // Lets the client read why, before the connection ends under it.
        if shutdown_write(socket.as_fd()).is_ok() {
            let drain = |context: &mut Context<'_>| poll_drain(socket, context);
            let _ = self.deadline.idle_within(LINGER, drain).await;
        }
        None
    }

    async fn converse(
        &self,
        socket: &mut TcpStream,
        mut received: Vec<u8>,
        dialogue: &mut dyn Dialogue,
    ) -> Result<Vec<u8>, &'static str> {
        let mut answer = Vec::new();
        dialogue.begin(&mut answer);
        loop {
            let next = match received.is_empty() {
                true => Ok(Next::Receive),
                false => dialogue.receive(&received, &mut answer),
            };
            let mut left = answer.as_slice();
            let said = self
                .deadline
                .wait(Stage::Begun, |context| poll_write_all(socket, &mut left, context))
                .await;
            match (next, said) {
                (Err(error), _) => return Err(error.reason()),
                (Ok(Next::Receive), Ok(Ok(()))) => {}
                (Ok(Next::Tls), Ok(Ok(()))) => return Ok(Vec::new()),
                (Ok(Next::TlsBegun), Ok(Ok(()))) => return Ok(received),
                (Ok(Next::End), _) => return Err("starttls_quit"),
                (_, Err(interrupt)) => return Err(interrupt.as_str()),
                (_, Ok(Err(_))) => return Err("io"),
            }
            answer.clear();
            received.clear();
            let read = self
                .deadline
                .wait(Stage::Begun, |context| poll_read(socket, &mut received, context));
            match read.await {
                Ok(Ok(1..)) => {}
                Ok(_) => return Err("closed"),
                Err(interrupt) => return Err(interrupt.as_str()),
            }
        }
    }
}
