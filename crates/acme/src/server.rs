//! The server as the issuer sees it: it answers challenges, and is told what happened.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tokio::time::timeout;

use crate::protocol::{End, Kind, Level, Order, REASON_BYTES_MAX, Report};

/// The other end of the pair.
#[derive(Clone)]
pub struct Server(Rc<Shared>);

struct Shared {
    end: End,
    /// The requests that wait for an answer.
    waiting: RefCell<HashMap<u64, oneshot::Sender<Option<String>>>>,
    number: Cell<u64>,
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
        Ok(Self(Rc::new(Shared { end, waiting: RefCell::default(), number: Cell::new(0) })))
    }

    /// The next order, without those that answer what is asked here.
    ///
    /// # Errors
    /// If the server has gone.
    pub async fn next_order(&self) -> io::Result<Order> {
        loop {
            match self.0.end.receive().await? {
                Order::Presented { number, refused } => {
                    if let Some(waiting) = self.0.waiting.borrow_mut().remove(&number) {
                        // An order that was given up waits no longer.
                        let _ = waiting.send(refused);
                    }
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
        let number = self.0.number.get().wrapping_add(1);
        self.0.number.set(number);
        let (answer, answered) = oneshot::channel();
        self.0.waiting.borrow_mut().insert(number, answer);
        let (name, token) = (name.to_owned(), token.to_owned());
        let withdraw = Report::Withdraw { kind, name: name.clone(), token: token.clone() };
        // From here on it may be there.
        let presented = Presented { server: self.clone(), withdraw: Some(withdraw) };
        let key_authorization = key_authorization.to_owned();
        let asked = Report::Present { number, kind, name, token, key_authorization };
        let answer = async {
            self.0.end.send(&asked).await?;
            answered.await.map_err(io::Error::other)
        };
        let answer = timeout(ANSWER_TIME_MAX, answer).await;
        self.0.waiting.borrow_mut().remove(&number);
        match answer {
            Ok(Ok(None)) => Ok(presented),
            Ok(Ok(Some(refused))) => Err(io::Error::other(refused)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other("the server does not take it in time")),
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

    /// Has the server log a line that is bounded already. What ends lines in it does not.
    pub(crate) fn log_all(&self, level: Level, text: String) {
        let text = text.chars().map(|each| if each.is_control() { ' ' } else { each }).collect();
        self.tell(Report::Log { level, text });
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

/// The server's main thread answers between two reloads.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
