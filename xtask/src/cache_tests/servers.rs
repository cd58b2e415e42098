//! The servers of a run of the suite: the suite's own, and kettle before it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::checkout;
use crate::files;
use crate::process::{Server, free_port};

/// Both servers. They are killed when dropped.
pub struct Servers {
    /// The ports where kettle listens with TLS, and without.
    pub ports: [u16; 2],
    /// In the order in which they end.
    _both: [Server; 2],
}

impl Servers {
    /// Starts them in this folder, and waits until they listen.
    pub fn start(folder: &Path) -> Result<Self, String> {
        let ports = [free_port()?, free_port()?];
        let mut node = Command::new("node");
        node.arg("origin.mjs").current_dir(folder).stdout(Stdio::piped());
        let (origin_server, line) = Server::start(&mut node, "Listening on ")?;
        let address = line.trim_end_matches('/');
        let origin = address.rsplit_once(':').map_or(address, |(_, port)| port);
        let config = CONFIG
            .replace("PORT", &ports[0].to_string())
            .replace("PLAIN", &ports[1].to_string())
            .replace("ORIGIN", origin)
            .replace("FOLDER", &folder.display().to_string());
        files::write(folder.join("kettle.toml"), config)?;
        let mut kettle = Command::new(checkout::target_folder().join("debug/kettle"));
        kettle.args(["run", "--config", "kettle.toml"]).current_dir(folder).stderr(Stdio::piped());
        // It says last where TLS is placed, when it listens.
        let (kettle, _) = Server::start(kettle.stdout(Stdio::null()), "TLS: ")?;
        Ok(Self { ports, _both: [origin_server, kettle] })
    }
}

const CONFIG: &str = include_str!("../../../tests/cache-tests/kettle.toml");
