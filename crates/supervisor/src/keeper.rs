//! What the keeper of a server may open and bind: what the configuration names, as it reads it itself.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kettle_config::{Config, Sandboxing};
use kettle_kernel::keeper::{self, Permits, is_written_by_root};
use kettle_kernel::process;

use crate::prepare;
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
    let mut named = Named { loader: loader.cloned(), ..Named::default() };
    named.take(config);
    if let Err(error) = keeper::start(named, config.server.sandbox != Sandboxing::Off) {
        tracing::warn!(%error, "there will be no keeper: a reload reads and binds only what this user may");
        keeper::do_without();
    }
}

/// What the configuration has named since the start.
#[derive(Default)]
struct Named {
    loader: Option<Loader>,
    files: HashSet<PathBuf>,
    addresses: HashSet<SocketAddr>,
}

impl Named {
    fn take(&mut self, config: &Config) {
        self.files.extend(prepare::files_read(config).map(Path::to_owned));
        self.addresses.extend(config.listeners.iter().map(|listener| listener.address.value));
    }
}

impl Permits for Named {
    fn renew(&mut self) {
        // Without a loader the configuration stays what it is.
        let Some(loader) = self.loader.clone() else { return };
        let (config, opened) = keeper::opened_by(|| loader());
        // What was named before stays: that configuration may go on to be in force.
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
}
