//! Looking after the servers of the backends in force, in one place of the process: checks, and lookups of names. A task that a
//! reload does not change goes on, a check or a lookup under way among it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use kettle_config::ServerAddress;
use tokio::task::{JoinHandle, LocalSet};

use super::check::{Handshake, keep_checking};
use super::names::{SYSTEM, keep_looking_up};
use super::{Backend, Backends, Server, Watched};

/// The tasks that look after servers.
pub struct BackendTasks<H> {
    tasks: LocalSet,
    duties: Vec<Duty<H>>,
}

/// A task for one server. Dropped, it is done no longer.
struct Duty<H> {
    work: Work,
    watched: Rc<RefCell<Watched<H>>>,
    task: JoinHandle<()>,
}

/// The work of a task.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Work {
    LookUp,
    Check,
}

impl<H> Default for BackendTasks<H> {
    fn default() -> Self {
        Self { tasks: LocalSet::new(), duties: Vec::new() }
    }
}

impl<H: Handshake + 'static> BackendTasks<H> {
    /// Looks after these from here on, and after no others. Names are looked up by the blocking threads of the runtime.
    pub fn adopt(&mut self, backends: &Backends, handshake: H) {
        let handshake = Rc::new(handshake);
        let before = std::mem::take(&mut self.duties).into_iter();
        let mut before: HashMap<_, _> = before.map(|duty| (duty.key(), duty)).collect();
        for backend in backends.iter() {
            for server in &backend.servers {
                for work in works(backend, server) {
                    let backend = Arc::clone(backend);
                    let server = Arc::clone(server);
                    let watched = Watched { backend, server, handshake: Rc::clone(&handshake) };
                    let duty = match before.remove(&key(work, &watched)) {
                        Some(duty) if duty.is_same(work, &watched) => {
                            duty.watched.replace(watched);
                            duty
                        }
                        _ => self.begin(work, watched),
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
        let begun = watched.borrow();
        let settings = &begun.backend.settings;
        let task = match (work, &begun.server.address, &settings.check) {
            (Work::LookUp, ServerAddress::Name(name, port), _) => {
                let name = name.clone();
                let interval = settings.resolve_interval;
                self.tasks.spawn_local(keep_looking_up(now, name, *port, interval, SYSTEM))
            }
            (Work::Check, _, Some(check)) => {
                self.tasks.spawn_local(keep_checking(now, check.clone()))
            }
            // There is nothing to be done.
            _ => self.tasks.spawn_local(async {}),
        };
        drop(begun);
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
    let has_name = matches!(server.address, ServerAddress::Name(..));
    let look_up = has_name.then_some(Work::LookUp);
    let check = backend.settings.check.as_ref().map(|_| Work::Check);
    look_up.into_iter().chain(check)
}

/// Returns the key of a task: the work, and the state of the server for which it is, which no other has.
fn key<H>(work: Work, watched: &Watched<H>) -> (Work, usize) {
    (work, Arc::as_ptr(&watched.server.state).addr())
}

impl<H> Duty<H> {
    fn key(&self) -> (Work, usize) {
        key(self.work, &self.watched.borrow())
    }

    /// True if it is done in the same way, for the same server.
    fn is_same(&self, work: Work, watched: &Watched<H>) -> bool {
        let known = self.watched.borrow();
        let old = &known.backend.settings;
        let new = &watched.backend.settings;
        let has_changed = match work {
            Work::LookUp => old.resolve_interval != new.resolve_interval,
            Work::Check => {
                (&old.check, old.send_proxy, &old.tls) != (&new.check, new.send_proxy, &new.tls)
            }
        };
        !has_changed
            && !self.task.is_finished()
            && Arc::ptr_eq(&known.backend.shared, &watched.backend.shared)
    }
}

impl<H> Drop for Duty<H> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
