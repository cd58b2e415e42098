//! Looking up the names of servers, again and again, on threads that may wait for it.
//!
//! A lookup cannot be ended (getaddrinfo(3)). One that takes too long counts as failed, and no other begins for the same name
//! until it is over.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::pin;
use std::time::Duration;

use kettle_runtime::disk::on_thread;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::failure::{Failure, Outcome};
use super::{Backend, Server, Watched};

/// The lookup of names.
#[derive(Clone, Copy)]
pub(super) struct Resolver {
    look_up: fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
    /// Lookups that may be under way at once.
    lookups: &'static Semaphore,
}

/// As the system does.
pub(super) static SYSTEM: Resolver = Resolver { look_up, lookups: &LOOKUPS };

fn look_up(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((name, port).to_socket_addrs()?.collect())
}

/// Looks a server's name up for ever: each `interval`, and more often for as long as it has no address.
pub(super) async fn keep_looking_up<H>(
    watched: impl Fn() -> Watched<H>,
    name: String,
    port: u16,
    interval: Duration,
    resolver: Resolver,
) {
    let take_note = |found| {
        let Watched { backend, server, .. } = watched();
        take_note(&backend, &server, found);
    };
    let mut pause = PAUSE_MIN;
    loop {
        let asked = name.clone();
        let name = &name;
        let mut lookup = pin!(async move {
            // A caller that gives up leaves the permit with the thread: threads are what is scarce.
            let permit = resolver.lookups.acquire().await;
            let lookup = on_thread(move || {
                let _permit = permit;
                (resolver.look_up)(&asked, port)
            });
            match lookup {
                Some(lookup) => match lookup.await {
                    Some(found) => found.map_err(Failure::from),
                    None => Err(Failure::new(Outcome::Other, "the lookup broke off")),
                },
                None => {
                    let no_thread = format!("no thread can be started to look up {name}");
                    Err(Failure::new(Outcome::NoResources, no_thread))
                }
            }
        });
        // Lookups of other names that hang may hold this one up: to its server it is the same.
        let found = match timeout(LOOKUP_TIME_MAX, &mut lookup).await {
            Ok(found) => found,
            Err(_) => {
                let late =
                    Failure::new(Outcome::TimedOut, format!("nobody answers what {name} is"));
                take_note(Err(late));
                lookup.await
            }
        };
        take_note(found);
        if watched().server.has_address() {
            sleep(interval).await;
        } else {
            sleep(interval.min(pause)).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }
}

fn take_note(backend: &Backend, server: &Server, found: Result<Vec<SocketAddr>, Failure>) {
    let found = found.and_then(|addresses| match addresses.is_empty() {
        true => Err(Failure::new(Outcome::Other, "the name has no address")),
        false => Ok(addresses),
    });
    match found {
        Ok(addresses) => {
            let known = server.state.addresses();
            if server.state.found_at(&those_tried(addresses, &known)) {
                backend.shared.queue.call_front();
            }
        }
        Err(failure) => {
            let is_nowhere = server.state.not_found(&failure);
            tracing::warn!(backend = %backend.name, server = %server.name, %failure, is_nowhere, "a server's name is not found");
            if is_nowhere {
                backend.shared.queue.call_front();
            }
        }
    }
}

/// As many as are tried, in the order of the resolver. Those known stay: it may change the order from answer to answer, and
/// connections that are kept would lead to none of the name's addresses by that.
fn those_tried(mut found: Vec<SocketAddr>, known: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_known = |address: &SocketAddr| known.contains(address);
    let known_count = found.iter().filter(|it| is_known(it)).count();
    let mut room = ADDRESSES_MAX.saturating_sub(known_count);
    found.retain(|address| {
        let is_tried = is_known(address) || room > 0;
        room -= usize::from(is_tried && !is_known(address));
        is_tried
    });
    found.truncate(ADDRESSES_MAX);
    found
}

/// Lookups under way at once, in the whole process.
static LOOKUPS: Semaphore = Semaphore::const_new(4);

/// The number of a name's addresses that are tried.
const ADDRESSES_MAX: usize = 16;

/// The resolver's own patience with one server (resolv.conf(5)).
const LOOKUP_TIME_MAX: Duration = Duration::from_secs(5);

/// Before a name that was never found is looked up for the second time; the pause doubles from lookup to lookup,
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// up to this: whatever the interval, the server is there soon after its name is.
const PAUSE_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
