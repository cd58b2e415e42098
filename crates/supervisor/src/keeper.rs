//! What the keeper of a server may open and bind: what the configuration names, as it reads it itself.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kettle_config::Config;
use kettle_kernel::keeper::{self, Permits, is_chosen_by_root};
use kettle_kernel::process;

use crate::prepare;
use crate::reload::Loader;

/// Starts one for a server that root starts and that goes on as somebody else. Before there is any thread.
pub(crate) fn start(config: &Config, loader: Option<&Loader>) {
    let Ok(Some(account)) = prepare::account(config) else { return };
    if !process::is_root() || account.is_current() {
        return;
    }
    let mut named = Named { loader: loader.cloned(), ..Named::default() };
    named.take(config);
    if let Err(error) = keeper::start(named) {
        tracing::warn!(%error, "there will be no keeper: a reload reads and binds only what this user may");
    }
}

/// What the configuration names that was read last.
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
        self.files.clear();
        self.addresses.clear();
        // What others than root may write tells a server of root's nothing.
        if !opened.iter().all(|path| is_written_by_root(path)) {
            return;
        }
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

/// Whether only root decides what is in a file, if there is one.
fn is_written_by_root(path: &Path) -> bool {
    match path.metadata() {
        Ok(file) => {
            file.uid() == 0
                && file.mode() & 0o002 == 0
                && (file.mode() & 0o020 == 0 || file.gid() == 0)
                && is_chosen_by_root(path)
        }
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}
