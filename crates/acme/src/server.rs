//! The server as the issuer sees it: it answers challenges, and is told what happened.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::spawn_local;
use tokio::time::timeout;

use crate::protocol::{End, Kind, Level, Order, Questions, REASON_BYTES_MAX, Report};

/// The other end of the pair.
#[derive(Clone)]
pub struct Server(Rc<Shared>);

struct Shared {
    end: End,
    /// The questions to it, which it answers by a reason if it refuses.
    questions: Questions<Option<String>>,
}

/// A challenge that the server answers as long as this is there.
pub struct Presented {
    server: Server,
    withdraw: Option<Report>,
}

impl Server {
    /// The server at the other end of this socket.
    ///
    /// # Errors
    /// If the runtime cannot watch it.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        let end = End::new(socket)?;
        Ok(Self(Rc::new(Shared { end, questions: Questions::default() })))
    }

    /// The next order, without those that answer what is asked here.
    ///
    /// # Errors
    /// If the server has gone.
    pub async fn next_order(&self) -> io::Result<Order> {
        loop {
            match self.0.end.receive().await? {
                Order::Presented { number, refused } => {
                    self.0.questions.answer(number, refused);
                }
                order => return Ok(order),
            }
        }
    }

    /// Has the server answer a challenge.
    ///
    /// # Errors
    /// If it does not, or not in time.
    pub async fn present(
        &self,
        kind: Kind,
        name: &str,
        token: &str,
        key_authorization: &str,
    ) -> io::Result<Presented> {
        let name = name.to_owned();
        let token = token.to_owned();
        let withdraw = Report::Withdraw { kind, name: name.clone(), token: token.clone() };
        // From here on it may be there.
        let presented = Presented { server: self.clone(), withdraw: Some(withdraw) };
        let key_authorization = key_authorization.to_owned();
        let ask = async |number| {
            self.0.end.send(&Report::Present { number, kind, name, token, key_authorization }).await
        };
        match self.0.questions.ask(ask, ANSWER_TIME_MAX).await? {
            Some(None) => Ok(presented),
            Some(Some(refused)) => Err(io::Error::other(refused)),
            None => Err(io::Error::other("the server does not take it in time")),
        }
    }

    /// Tells the server something, without waiting for it.
    pub fn tell(&self, report: Report) {
        if self.0.end.try_send(&report).is_ok() {
            return;
        }
        let server = self.clone();
        spawn_local(async move {
            // A server that has gone is found out by what is received.
            let _ = timeout(ANSWER_TIME_MAX, server.0.end.send(&report)).await;
        });
    }

    /// Has the server log a line.
    pub fn log(&self, level: Level, text: impl Into<String>) {
        self.tell(Report::Log { level, text: shortened(text.into()) });
    }

    /// Has the server log a line that is bounded already. A line end in it does not end the line.
    pub(crate) fn log_all(&self, level: Level, text: String) {
        self.tell(Report::Log { level, text: in_one_line(text) });
    }
}

impl Drop for Presented {
    fn drop(&mut self) {
        if let Some(withdraw) = self.withdraw.take() {
            self.server.tell(withdraw);
        }
    }
}

/// As much of a text as goes into a message.
pub(crate) fn shortened(mut text: String) -> String {
    if text.len() > REASON_BYTES_MAX {
        let end = (0..=REASON_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push_str(" …");
    }
    text
}

/// A text that goes into a log, of which each line is one line.
pub(crate) fn in_one_line(text: String) -> String {
    text.chars().map(|each| if each.is_control() { ' ' } else { each }).collect()
}

/// The server's main thread answers between two reloads.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
