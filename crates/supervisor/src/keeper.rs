//! The files that the keeper of a server may open and the addresses it may bind: those that the configuration names, as it
//! reads it itself.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kettle_config::{Config, ListenAddress, Sandboxing};
use kettle_kernel::keeper::{self, Permits, is_written_by_root};
use kettle_kernel::process;
use kettle_kernel::socket::unix::Rights;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::prepare::{self, socket_rights};
use crate::reload::Loader;

/// Starts one for a server that root starts and that goes on as somebody else. Before there is any thread.
pub(crate) fn start(config: &Config, loader: Option<&Loader>) {
    let Ok(Some(account)) = prepare::account(config) else { return };
    if !process::is_root() || account.is_current() {
        return;
    }
    let own = config.folders_read.iter().chain([&config.path]);
    if let Some(open) = own.into_iter().find(|path| !is_written_by_root(path)) {
        let open = open.display();
        tracing::warn!("there will be no keeper, because others than root may write {open}");
        keeper::do_without();
        return;
    }
    // By its own reading a keeper may have more to do at each reload, and nowhere else.
    let sockets = config.listeners.iter().filter_map(|listener| listener.address.unix()?.parent());
    let sockets = sockets.map(Path::to_owned).collect();
    let mut named = Named { loader: loader.cloned(), ..Named::default() };
    named.take(config);
    let is_confined = config.server.sandbox != Sandboxing::Off;
    if let Err(error) = keeper::start(named, is_confined, sockets) {
        tracing::warn!(%error, "there will be no keeper: a reload reads and binds only what this user may");
        keeper::do_without();
    }
}

/// Says when the keeper has ended, as soon as it has: the next reload would be late to tell.
#[allow(
    deprecated,
    reason = "sound with a descriptor that stays open as long as the process; its successor is `unsafe` because of types whose descriptor may change"
)]
pub(crate) async fn watch() -> Infallible {
    if let Some(watched) = keeper::watched()
        && let Ok(watched) = AsyncFd::with_interest(watched, Interest::READABLE)
    {
        while keeper::is_alive() == Some(true) {
            match watched.readable().await {
                Ok(mut readable) => readable.clear_ready(),
                Err(_) => return pending().await,
            }
        }
        tracing::warn!("the keeper has {GONE}");
    }
    pending().await
}

/// The keeper in one line for `kettle ctl status`; empty where there is none.
pub(crate) fn line() -> String {
    match keeper::is_alive() {
        Some(true) => "running".to_owned(),
        Some(false) => GONE.to_owned(),
        None => String::new(),
    }
}

const GONE: &str = "gone: reloads open and bind only what this user may; restart kettle";

/// The names of the configuration since the start.
#[derive(Default)]
struct Named {
    loader: Option<Loader>,
    files: HashSet<PathBuf>,
    addresses: HashSet<SocketAddr>,
    sockets: HashMap<PathBuf, Rights>,
}

impl Named {
    fn take(&mut self, config: &Config) {
        self.files.extend(prepare::files_read(config).map(Cow::into_owned));
        for listener in &config.listeners {
            match &listener.address.value {
                ListenAddress::Socket(address) => {
                    self.addresses.insert(*address);
                }
                // An address that nobody can have is a mistake, which is found by the server.
                ListenAddress::Unix(path) => {
                    let rights = socket_rights(config, listener).ok();
                    self.sockets.extend(rights.map(|rights| (path.clone(), rights)));
                }
            }
        }
    }
}

impl Permits for Named {
    fn renew(&mut self) {
        // Without a loader the configuration stays what it is.
        let Some(loader) = self.loader.clone() else { return };
        let (config, opened) = keeper::opened_by(|| loader());
        // A file that was named before stays: that configuration may go on to be in force.
        self.files.extend(opened);
        if let Ok(config) = config {
            self.take(&config);
        }
    }

    fn file(&self, path: &Path) -> bool {
        self.files.contains(path)
    }

    fn address(&self, address: SocketAddr) -> bool {
        self.addresses.contains(&address)
    }

    fn socket_rights(&self, path: &Path) -> Option<Rights> {
        self.sockets.get(path).copied()
    }
}
