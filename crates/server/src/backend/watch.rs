//! Looking after the servers of the backends in force, in one place of the process: checks, and lookups of names. What a
//! reload does not change goes on, a check or a lookup under way among it.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use kettle_config::{BackendTls, Check, SendProxy, ServerAddress};
use tokio::task::{JoinHandle, LocalSet};

use super::check::{Handshake, keep_checking};
use super::names::{keep_looking_up, look_up};
use super::{Backend, Backends, Server};

/// The tasks that look after servers.
pub struct Watch<H> {
    tasks: LocalSet,
    duties: Vec<Duty<H>>,
}

/// A server by the configuration in force, and how TLS is spoken to it.
pub(super) struct Watched<H> {
    pub(super) backend: Arc<Backend>,
    pub(super) server: Arc<Server>,
    pub(super) handshake: Rc<H>,
}

/// What is done for one server. Dropped, it is done no longer.
struct Duty<H> {
    work: Work,
    watched: Rc<RefCell<Watched<H>>>,
    task: JoinHandle<()>,
}

/// What is to be done, with all that makes it another work.
#[derive(Clone, PartialEq)]
enum Work {
    LookUp { name: String, port: u16, interval: Duration },
    Check { check: Check, send_proxy: SendProxy, tls: Option<BackendTls> },
}

impl<H> Default for Watch<H> {
    fn default() -> Self {
        Self { tasks: LocalSet::new(), duties: Vec::new() }
    }
}

impl<H: Handshake + 'static> Watch<H> {
    /// Looks after these from here on, and after no others. Names are looked up by the blocking threads of the runtime.
    pub fn adopt(&mut self, backends: &Backends, handshake: H) {
        let handshake = Rc::new(handshake);
        let mut before = std::mem::take(&mut self.duties);
        for backend in backends.iter() {
            for server in &backend.servers {
                for work in works(backend, server) {
                    let (backend, server) = (Arc::clone(backend), Arc::clone(server));
                    let watched = Watched { backend, server, handshake: Rc::clone(&handshake) };
                    let known = before.iter().position(|duty| duty.is_same(&work, &watched));
                    let duty = match known.map(|index| before.swap_remove(index)) {
                        Some(duty) => {
                            duty.watched.replace(watched);
                            duty
                        }
                        None => self.begin(work, watched),
                    };
                    self.duties.push(duty);
                }
            }
        }
    }

    fn begin(&self, work: Work, watched: Watched<H>) -> Duty<H> {
        let watched = Rc::new(RefCell::new(watched));
        let now = Rc::clone(&watched);
        let now = move || now.borrow().clone();
        let task = match work.clone() {
            Work::LookUp { name, port, interval } => {
                self.tasks.spawn_local(keep_looking_up(now, name, port, interval, look_up))
            }
            Work::Check { check, .. } => self.tasks.spawn_local(keep_checking(now, check)),
        };
        Duty { work, watched, task }
    }

    /// Does its work for as long as it is polled.
    pub async fn watch(&mut self) {
        let tasks = &mut self.tasks;
        // It may get more to do when it has nothing.
        poll_fn(|context| {
            let _all_done = Pin::new(&mut *tasks).poll(context);
            Poll::Pending
        })
        .await
    }
}

fn works(backend: &Backend, server: &Server) -> impl Iterator<Item = Work> {
    let look_up = match &server.address {
        ServerAddress::Name(name, port) => Some(Work::LookUp {
            name: name.clone(),
            port: *port,
            interval: backend.settings.resolve_interval,
        }),
        ServerAddress::Socket(_) | ServerAddress::Unix(_) => None,
    };
    let check = backend.settings.check.clone().map(|check| Work::Check {
        check,
        send_proxy: backend.settings.send_proxy,
        tls: backend.settings.tls.clone(),
    });
    look_up.into_iter().chain(check)
}

impl<H> Duty<H> {
    fn is_same(&self, work: &Work, watched: &Watched<H>) -> bool {
        let known = self.watched.borrow();
        self.work == *work
            && !self.task.is_finished()
            && Arc::ptr_eq(&known.server.state, &watched.server.state)
            && Arc::ptr_eq(&known.backend.shared, &watched.backend.shared)
    }
}

impl<H> Drop for Duty<H> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<H> Clone for Watched<H> {
    fn clone(&self) -> Self {
        Self {
            backend: Arc::clone(&self.backend),
            server: Arc::clone(&self.server),
            handshake: Rc::clone(&self.handshake),
        }
    }
}
