//! The issuer of a server, which fetches its certificates: how it is started, and what the main loop hears of it and does for it.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::chown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kettle_acme::programs::Programs;
use kettle_acme::protocol::{End, Kind, Level, Order, Report};
use kettle_acme::wishes::Wanted;
use kettle_acme::{Ended, state};
use kettle_config::{Config, Sandboxing};
use kettle_kernel::keeper;
use kettle_kernel::process::{self, Account};
use kettle_kernel::warden::{self, Ending, Names, Program, Turn, Ward};
use kettle_tls::Challenges;
use tokio::sync::oneshot;
use tokio::time::sleep_until;

use crate::acme_counters::AcmeCounters;
use crate::prepare;
use crate::reload::Loader;
use crate::sandbox::files_of_issuer;

/// Starts one for a server whose configuration has an authority; gives the server's end. Before there is any thread.
pub(crate) fn start(config: &mut Config, loader: Option<&Loader>) -> Option<OwnedFd> {
    if config.acme.is_empty() {
        return None;
    }
    let account = prepare::account(config).ok().flatten();
    let account = account.filter(|account| process::is_root() && !account.is_current());
    if let Err(error) = make_folders(config, account.as_ref()) {
        let state = config.server.state_directory.display();
        tracing::error!(
            "no certificate is fetched: the folders below {state} cannot be made: {error}"
        );
        return None;
    }
    let ward = IssuerWard { config, loader, account };
    match warden::start(NAMES, ward) {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::error!(%error, "no certificate is fetched: there is no process for it");
            None
        }
    }
}

struct IssuerWard<'c> {
    /// The configuration of the start. The warden takes it, and the server has its own.
    config: &'c mut Config,
    loader: Option<&'c Loader>,
    /// The user that the issuer becomes.
    account: Option<Account>,
}

/// The orders of a configuration to the warden and its issuer, without all that it says to the server.
struct Orders {
    wanted: Wanted,
    programs: Programs,
    is_confined: bool,
}

impl Ward for IssuerWard<'_> {
    type Orders = Orders;

    fn read(&mut self, turn: Turn) -> Option<Orders> {
        let _quiet = quiet();
        let config = match turn {
            Turn::First => std::mem::take(self.config),
            // A file that cannot be read now was refused by the server as well, or will be mended.
            Turn::Later => read_again(self.loader)?,
        };
        let is_confined = config.server.sandbox != Sandboxing::Off;
        Some(Orders { wanted: Wanted::of(&config), programs: Programs::of(&config), is_confined })
    }

    fn work(&self, orders: &mut Orders, server: OwnedFd, programs: OwnedFd) -> Ending {
        let _quiet = quiet();
        match issue((server, programs), orders, self.account.as_ref()) {
            Ok(Ended::ReadAgain) => Ending::Again,
            Ok(Ended::ServerGone) | Err(_) => Ending::Broken,
        }
    }

    fn program(&self, orders: &Orders, asked: &[u8]) -> Result<Program, String> {
        orders.programs.find(asked)
    }
}

/// The log of the server may be a socket, whose number is another's here. The server is told what is to be said.
fn quiet() -> tracing::subscriber::DefaultGuard {
    tracing::subscriber::set_default(tracing::subscriber::NoSubscriber::default())
}

/// A reading of its own: as root, only what nobody else may write tells it anything.
fn read_again(loader: Option<&Loader>) -> Option<Config> {
    let loader = loader?;
    let read = if process::is_root() { keeper::opened_by(|| loader()).0 } else { loader() };
    read.ok()
}

/// Is the issuer, until the server has gone or has another configuration.
fn issue(
    (server, programs): (OwnedFd, OwnedFd),
    orders: &mut Orders,
    account: Option<&Account>,
) -> io::Result<Ended> {
    let wishes = std::mem::take(&mut orders.wanted).read();
    if let Some(account) = account {
        let also_in = |group| account.clone().also_in(group);
        let account = wishes.certificates_group.map_or_else(|| account.clone(), also_in);
        account.become_for_good().map_err(io::Error::other)?;
    }
    let state = wishes.state_directory.clone();
    kettle_acme::run(server, programs, wishes, || {
        let files = orders.is_confined.then(|| files_of_issuer(&state));
        warden::confine(files.as_ref())
    })
}

/// As the user that the issuer goes on as.
fn make_folders(config: &Config, account: Option<&Account>) -> io::Result<()> {
    let state = &config.server.state_directory;
    let (root, _) = state::folders(state);
    for folder in [state.clone(), root].into_iter().chain(state::all_folders(state)) {
        let is_there = folder.exists();
        state::make_folder(&folder)?;
        // An account that is there already is somebody's decision.
        if let Some(account) = account.filter(|_| !is_there) {
            chown(&folder, Some(account.uid()), Some(account.gid()))?;
        }
    }
    Ok(())
}

/// True if what is to be fetched is the same by both.
pub(crate) fn is_same(one: &Config, other: &Config) -> bool {
    let wanted = |config: &Config| {
        let all = config.wanted_certificates();
        all.map(|wanted| (wanted.names.to_vec(), wanted.how.clone())).collect::<Vec<_>>()
    };
    one.acme == other.acme && wanted(one) == wanted(other)
}

/// The issuer as the main loop sees it.
pub(crate) struct Issuer {
    end: Option<End>,
    challenges: Challenges,
    counters: Arc<AcmeCounters>,
    /// True if it is at work.
    is_up: bool,
    /// When files are to be read again, because certificates are there.
    renewal: Option<Instant>,
    /// When that was done last.
    renewed: Option<Instant>,
    /// The sites whose certificates will be read then,
    issued: Vec<String>,
    /// and those whose are being read.
    renewing: Vec<String>,
    waiting: HashMap<u64, oneshot::Sender<Report>>,
    number: u64,
    /// When it was asked last what it does next, and whether something has changed since.
    looked: Option<Instant>,
    has_changed: bool,
}

impl Issuer {
    /// The one at the other end of this socket, if there is one. It presents challenges here.
    ///
    /// # Errors
    /// If the runtime cannot watch the socket.
    pub(crate) fn new(
        socket: Option<OwnedFd>,
        challenges: Challenges,
        counters: Arc<AcmeCounters>,
    ) -> io::Result<Self> {
        let is_up = false;
        let waiting = HashMap::new();
        let end = socket.map(End::new).transpose()?;
        if end.is_some() {
            counters.begin(&challenges);
        }
        Ok(Self {
            end,
            challenges,
            counters,
            is_up,
            renewal: None,
            renewed: None,
            issued: Vec::new(),
            renewing: Vec::new(),
            waiting,
            number: 0,
            looked: None,
            has_changed: false,
        })
    }

    /// Does what it asks for, until certificates are to be read again. Dropping this loses nothing.
    pub(crate) async fn next_renewal(&mut self) {
        loop {
            let Some(end) = &self.end else { return pending().await };
            let due = self.renewal;
            let renewal = async {
                match due {
                    Some(due) => sleep_until(due.into()).await,
                    None => pending().await,
                }
            };
            let received = tokio::select! {
                received = end.receive() => received,
                () = renewal => {
                    (self.renewal, self.renewed) = (None, Some(Instant::now()));
                    self.renewing.append(&mut self.issued);
                    return;
                }
            };
            match received {
                Ok(report) => self.hear(report),
                // It is as free to say nonsense as it likes.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(_) => {
                    tracing::error!("the process that fetches certificates is {GONE}");
                    self.end = None;
                    self.down();
                }
            }
        }
    }

    fn hear(&mut self, report: Report) {
        match report {
            Report::Begun { leads } => {
                self.challenges.withdraw_all();
                self.is_up = true;
                self.looked = None;
                self.counters.set_up(true);
                if !leads {
                    tracing::info!("another server fetches certificates into this state folder");
                }
            }
            Report::Ended => self.down(),
            Report::Present { number, kind, name, token, key_authorization } => {
                let done = match kind {
                    Kind::TlsAlpn => self.challenges.present_tls_alpn(&name, &key_authorization),
                    Kind::Http => self.challenges.present_http(&token, &key_authorization),
                    Kind::Dns | Kind::DnsPersist => Ok(()),
                };
                let refused = done.err().map(|error| error.to_string());
                self.tell(&Order::Presented { number, refused });
            }
            Report::Withdraw { kind, name, token } => match kind {
                Kind::TlsAlpn => self.challenges.withdraw_tls_alpn(&name, &token),
                Kind::Http => self.challenges.withdraw_http(&token),
                Kind::Dns | Kind::DnsPersist => {}
            },
            Report::Issued { site } => {
                // It is as free to repeat itself.
                if self.issued.len() < ISSUED_MAX {
                    self.issued.push(site);
                }
                // Those that come within a second are one reload.
                let now = Instant::now();
                let soonest = self.renewed.map_or(now, |renewed| now.max(renewed + RENEWALS_APART));
                self.renewal.get_or_insert(soonest);
            }
            Report::Attempt { authority, is_issued, .. } => {
                self.has_changed = true;
                self.counters.attempt(authority, is_issued);
            }
            Report::Log { level, text } => match level {
                Level::Info => tracing::info!("{text}"),
                Level::Warn => tracing::warn!("{text}"),
                Level::Error => tracing::error!("{text}"),
            },
            Report::Sites { number, .. }
            | Report::Records { number, .. }
            | Report::Done { number, .. } => {
                if let Some(asker) = self.waiting.remove(&number) {
                    // The caller may be gone.
                    let _ = asker.send(report);
                }
            }
        }
    }

    fn down(&mut self) {
        self.challenges.withdraw_all();
        self.waiting.clear();
        self.renewing.clear();
        self.is_up = false;
        self.counters.set_up(false);
        self.counters.set_next(Vec::new());
    }

    /// Tells it which certificates were read, whatever came of that.
    pub(crate) fn renewed(&mut self) {
        for site in std::mem::take(&mut self.renewing) {
            self.tell(&Order::InForce { site });
        }
    }

    /// Has it read the configuration again.
    pub(crate) fn read_again(&self) {
        self.tell(&Order::ReadAgain);
    }

    /// Asks it something. None comes back if it ends before it has answered.
    pub(crate) fn ask(&mut self, order: impl FnOnce(u64) -> Order) -> oneshot::Receiver<Report> {
        let (asker, answer) = oneshot::channel();
        self.number = self.number.wrapping_add(1);
        self.waiting.retain(|_, asker| !asker.is_closed());
        if self.is_up && self.waiting.len() < QUESTIONS_MAX && self.tell(&order(self.number)) {
            self.waiting.insert(self.number, asker);
        }
        answer
    }

    /// True if it is time to ask what it does next: at once when it has begun, soon after an order, else each minute.
    pub(crate) fn is_to_be_asked(&mut self, now: Instant) -> bool {
        let pause = if self.has_changed { CHANGED_PAUSE } else { LOOK_PAUSE };
        let is_due = self.is_up && self.looked.is_none_or(|looked| now >= looked + pause);
        if is_due {
            (self.looked, self.has_changed) = (Some(now), false);
        }
        is_due
    }

    pub(crate) fn counters(&self) -> &AcmeCounters {
        &self.counters
    }

    /// It in one line for `kettle ctl status`; empty where there is none.
    pub(crate) fn line(&self) -> String {
        match (&self.end, self.is_up) {
            (Some(_), true) => "running".to_owned(),
            (Some(_), false) => "not running; it is started again within a minute".to_owned(),
            (None, _) if warden::is_there() => GONE.to_owned(),
            (None, _) => String::new(),
        }
    }

    /// Says if it was told. It is not waited for.
    fn tell(&self, order: &Order) -> bool {
        self.end.as_ref().is_some_and(|end| end.try_send(order).is_ok())
    }
}

const NAMES: Names =
    Names { warden: c"kettle-warden", ward: c"kettle-issuer", farewell: b"\"Ended\"" };

const GONE: &str = "gone: certificates are not renewed; restart kettle";

/// The greatest age of what is known of its next steps may be,
const LOOK_PAUSE: Duration = Duration::from_mins(1);
/// and how old where an order has ended meanwhile.
const CHANGED_PAUSE: Duration = Duration::from_secs(10);

/// Questions that wait for an answer.
const QUESTIONS_MAX: usize = 16;

/// Sites whose new certificates wait to be read, which is a second.
const ISSUED_MAX: usize = 1_000;

/// Reloads for certificates that come one after the other.
const RENEWALS_APART: Duration = Duration::from_secs(1);
