//! Programs that write records in the DNS, and those that are told of a new certificate: which ones the configuration has, and how the
//! issuer asks the warden for them.
//!
//! The issuer says of which site, what for, and what the record is to have. Path, name of the record and all else are from the warden's
//! own reading of the configuration: an issuer that somebody has taken over has nothing else started.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use kettle_config::{Config, ServerSettings, WantedCertificate};
use kettle_kernel::keeper;
use kettle_kernel::process;
use kettle_kernel::warden::{Program, ProgramEnd, read_answer};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::protocol::{Datagrams, Level, Questions};
use crate::server::Server;

/// A request of the issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The folder of the site.
    pub site: String,
    /// The act of a program.
    pub act: Act,
}

/// The act of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Write a record for the name of this number.
    Present(usize, String),
    /// Take it away.
    Cleanup(usize, String),
    /// Whatever is to be done after a new certificate.
    After,
}

/// The programs that a configuration has.
pub struct Programs(HashMap<String, Entry>);

struct Entry {
    names: Vec<String>,
    hook: Option<PathBuf>,
    after: Option<PathBuf>,
    time_max: Duration,
    /// The folder of the certificate in force.
    lineage: PathBuf,
}

impl Programs {
    /// Those of this one.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let wanted = config.wanted_certificates();
        let entries = wanted.filter_map(|wanted| {
            let entry = Entry::of(&wanted, config)?;
            Some((wanted.folder()?, entry))
        });
        Self(entries.collect())
    }

    /// The program that is asked for.
    ///
    /// # Errors
    /// Why there is none, or none that may be run.
    pub fn find(&self, asked: &[u8]) -> Result<Program, String> {
        let request = serde_json::from_slice::<Request>(asked);
        let request = request.map_err(|_| "that is no request".to_owned())?;
        let entry = self.0.get(&request.site).ok_or("no such site has a program")?;
        let (path, arguments, environment) = match &request.act {
            Act::Present(name, digest) => entry.record("present", *name, digest)?,
            Act::Cleanup(name, digest) => entry.record("cleanup", *name, digest)?,
            Act::After => entry.after()?,
        };
        may_be_run(path)?;
        let path = path.to_owned();
        let time_max = entry.time_max;
        Ok(Program { path, arguments, environment, time_max, lane: request.site })
    }
}

type Call<'e> = (&'e Path, Vec<OsString>, Vec<(&'static str, OsString)>);

impl Entry {
    fn of(wanted: &WantedCertificate<'_>, config: &Config) -> Option<Self> {
        let path = |path: &Option<kettle_config::Located<PathBuf>>| {
            path.as_ref().map(|path| path.value.clone())
        };
        let hook = path(&wanted.how.hook);
        let after = path(&wanted.how.after);
        if hook.is_none() && after.is_none() {
            return None;
        }
        Some(Self {
            names: wanted.names.iter().map(|name| name.value.clone()).collect(),
            hook,
            after,
            time_max: time_max(wanted, config),
            lineage: lineage(wanted, &config.server)?,
        })
    }

    /// As lego's provider `exec` calls its program, so that there are such programs.
    fn record(&self, word: &str, name: usize, digest: &str) -> Result<Call<'_>, String> {
        let hook = self.hook.as_ref().ok_or("the site has no program for records")?;
        let name = self.names.get(name).ok_or("the site has no such name")?;
        // Base64 for URLs of a SHA-256 (RFC 8555 section 8.4).
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if digest.len() != DIGEST_BYTES || !digest.bytes().all(is_plain) {
            return Err("that is no digest".to_owned());
        }
        let record = format!("_acme-challenge.{}.", name.strip_prefix("*.").unwrap_or(name));
        let arguments = [word, &record, digest].map(OsString::from);
        Ok((hook, arguments.into(), Vec::new()))
    }

    /// As certbot calls its deploy hooks.
    fn after(&self) -> Result<Call<'_>, String> {
        let after = self.after.as_ref().ok_or("the site has no program for after that")?;
        let environment = vec![
            ("RENEWED_LINEAGE", self.lineage.clone().into()),
            ("RENEWED_DOMAINS", self.names.join(" ").into()),
        ];
        Ok((after, Vec::new(), environment))
    }
}

/// The time a program of this certificate may run.
pub(crate) fn time_max(wanted: &WantedCertificate<'_>, config: &Config) -> Duration {
    let authorities = wanted.authorities(config);
    authorities.iter().map(|it| it.hook_timeout).max().unwrap_or_default()
}

fn lineage(wanted: &WantedCertificate<'_>, server: &ServerSettings) -> Option<PathBuf> {
    let chain = wanted.files(server)?.chain.value;
    let folder = chain.parent()?;
    // A relative path is relative to where the server was started.
    Some(std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()))
}

/// Looks whether a program may be run: whoever may write it could else do all that the warden may.
///
/// # Errors
/// Why it is not.
pub fn may_be_run(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let found = path.metadata().map_err(|error| format!("{shown} is not run: {error}"))?;
    if process::is_root() && !keeper::is_written_by_root(path) {
        return Err(format!(
            "{shown} is not run as root, since others than root may change it or a folder above it"
        ));
    }
    if found.mode() & 0o002 != 0 {
        return Err(format!("{shown} is not run, since everybody may change it"));
    }
    if found.permissions().mode() & 0o111 == 0 {
        return Err(format!("{shown} is not run, since it is not executable: chmod +x {shown}"));
    }
    Ok(())
}

/// The warden, as the issuer sees it.
#[derive(Clone)]
pub struct Warden(Rc<Shared>);

struct Shared {
    socket: Datagrams,
    server: Server,
    questions: Questions<ProgramEnd>,
    /// It takes no more at once.
    room: Semaphore,
    /// The number of requests that are asked for, or are about to be.
    under_way: Cell<usize>,
}

/// The records of an order, which are taken away when this is dropped.
pub struct Records<'w> {
    warden: &'w Warden,
    site: &'w str,
    time_max: Duration,
    written: Vec<Act>,
}

impl Warden {
    /// The one at the other end of this socket. The output of programs goes to the server's log.
    ///
    /// # Errors
    /// If the runtime cannot watch it.
    pub fn new(socket: OwnedFd, server: Server) -> io::Result<Self> {
        let shared = Rc::new(Shared {
            socket: Datagrams::new(socket)?,
            server,
            questions: Questions::default(),
            room: Semaphore::new(ASKED_MAX),
            under_way: Cell::new(0),
        });
        let listening = Rc::clone(&shared);
        spawn_local(async move {
            while let Ok(bytes) = listening.socket.receive_bytes().await {
                let Some((number, done)) = read_answer(&bytes) else { continue };
                listening.questions.answer(number, done);
            }
        });
        Ok(Self(shared))
    }

    /// True if no program runs and none is asked for.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.under_way.get() == 0
    }

    /// Has a program run, and waits for its end. Its output is logged.
    ///
    /// # Errors
    /// Why it has not done what it was to do.
    pub async fn run(&self, request: &Request, time_max: Duration) -> Result<(), String> {
        let _counted = Counted::begin(&self.0);
        let what = request.act.what();
        let failed = |reason: &str| format!("the program for {what} of {} {reason}", request.site);
        let room = self.0.room.acquire().await;
        let _room = room.map_err(|_| failed("cannot be asked for"))?;
        let ask = async |number: u64| {
            let mut message = number.to_le_bytes().to_vec();
            message.extend(serde_json::to_vec(request).unwrap_or_default());
            self.0.socket.send_bytes(&message).await
        };
        // It may wait for others of its site.
        let answer = self.0.questions.ask(ask, time_max * 2 + ANSWER_TIME_MAX).await;
        let (output, reason) = match answer {
            Ok(Some(Ok(output))) => (output, None),
            Ok(Some(Err((reason, output)))) => (output, Some(reason)),
            Ok(None) => (String::new(), Some("was not heard of in time".to_owned())),
            Err(error) => (String::new(), Some(error.to_string())),
        };
        if !output.is_empty() {
            let level = if reason.is_none() { Level::Info } else { Level::Warn };
            let lines: Vec<&str> =
                output.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
            let text = failed(&format!("says: {}", lines.join(" | ")));
            self.0.server.log_all(level, text);
        }
        reason.map_or(Ok(()), |reason| Err(failed(&reason)))
    }

    /// The records of an order for the site with this folder, of which there are none yet.
    #[must_use]
    pub fn records<'w>(&'w self, site: &'w str, time_max: Duration) -> Records<'w> {
        Records { warden: self, site, time_max, written: Vec::new() }
    }
}

impl Records<'_> {
    /// Has a record written for the name of this number.
    ///
    /// # Errors
    /// Why it is not there. It is taken away even so.
    pub async fn present(&mut self, name: usize, digest: String) -> Result<(), String> {
        // From here on it may be there, or a part of it.
        self.written.push(Act::Cleanup(name, digest.clone()));
        let request = Request { site: self.site.to_owned(), act: Act::Present(name, digest) };
        self.warden.run(&request, self.time_max).await
    }

    /// True if there are any.
    #[must_use]
    pub fn are_there(&self) -> bool {
        !self.written.is_empty()
    }
}

impl Drop for Records<'_> {
    fn drop(&mut self) {
        if self.written.is_empty() {
            return;
        }
        let warden = self.warden.clone();
        let time_max = self.time_max;
        let site = self.site.to_owned();
        let written = std::mem::take(&mut self.written);
        let counted = Counted::begin(&warden.0);
        spawn_local(async move {
            for act in written {
                let removal = Request { site: site.clone(), act };
                if let Err(error) = warden.run(&removal, time_max).await {
                    warden.0.server.log(Level::Warn, error);
                }
            }
            drop(counted);
        });
    }
}

struct Counted(Rc<Shared>);

impl Counted {
    fn begin(shared: &Rc<Shared>) -> Self {
        shared.under_way.set(shared.under_way.get() + 1);
        Self(Rc::clone(shared))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get().saturating_sub(1));
    }
}

impl Act {
    fn what(&self) -> &'static str {
        match self {
            Self::Present(..) => "`present`",
            Self::Cleanup(..) => "`cleanup`",
            Self::After => "`after`",
        }
    }
}

/// 256 bits in Base64.
const DIGEST_BYTES: usize = 43;

/// The warden has room for more than that.
const ASKED_MAX: usize = 64;

/// The warden does nothing that takes long.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
