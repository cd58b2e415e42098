//! What a run of the suite talks to: the suite's own server, and kettle before it.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::checkout;
use crate::vm::cache::at;

/// Both servers. They are killed when dropped.
pub struct Servers {
    /// Where kettle listens.
    pub port: u16,
    children: Vec<Child>,
}

impl Servers {
    /// Starts them in this folder, and waits until they listen.
    pub fn start(folder: &Path) -> Result<Self, String> {
        let port = free_port()?;
        let mut servers = Self { port, children: Vec::new() };
        let mut node = Command::new("node");
        node.arg("origin.mjs").current_dir(folder).stdout(Stdio::piped());
        let line = servers.spawn(&mut node, "Listening on ")?;
        let address = line.trim_end_matches('/');
        let origin = address.rsplit_once(':').map_or(address, |(_, port)| port);
        let config = CONFIG
            .replace("PORT", &port.to_string())
            .replace("ORIGIN", origin)
            .replace("FOLDER", &folder.display().to_string());
        let path = folder.join("kettle.toml");
        std::fs::write(&path, config).map_err(|error| at(&path, &error))?;
        let mut kettle = Command::new(checkout::target_folder().join("debug/kettle"));
        kettle.args(["run", "--config", "kettle.toml"]).current_dir(folder).stderr(Stdio::piped());
        // It says last where TLS is placed, when it listens.
        servers.spawn(kettle.stdout(Stdio::null()), "TLS: ")?;
        Ok(servers)
    }

    /// Starts one that says by this word that it listens; the line in which it does.
    fn spawn(&mut self, command: &mut Command, word: &str) -> Result<String, String> {
        let mut child =
            command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let output: Option<Box<dyn Read + Send>> = match (child.stdout.take(), child.stderr.take())
        {
            (Some(stdout), _) => Some(Box::new(stdout)),
            (None, stderr) => stderr.map(|it| Box::new(it) as _),
        };
        self.children.push(child);
        let output = output.ok_or("a server has no output")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains(word));
        // It goes on to speak, and must not find its pipe full.
        std::thread::spawn(move || lines.for_each(drop));
        line.ok_or_else(|| format!("{command:?} ended before it listened"))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_port() -> Result<u16, String> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| format!("no free port: {error}"))
}

const CONFIG: &str = include_str!("../../../tests/cache-tests/kettle.toml");
