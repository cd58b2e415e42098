//! The issuer's loop: looks at all sites, does what `plan` says for those whose time has come, and hears the server meanwhile.

mod after;
mod finish;
mod report;
#[cfg(test)]
mod tests;
mod work;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use kettle_kernel::process;
use kettle_tls::policy::Policy;
use tokio::task::{Id, JoinSet, LocalSet};
use tokio::time::{Instant as TokioInstant, sleep_until};

use crate::client::ClientTask;
use crate::job::Accounts;
use crate::order::Start;
use crate::plan::{self, AuthorityWish, OpenOrder, SiteWish, Standing, Step};
use crate::programs::Warden;
use crate::protocol::{Kind, Level, Order, Report};
use crate::server::Server;
use crate::state::StateFolder;
use crate::wishes::{Authority, Site, Wishes};
use work::{Finished, Shared, Work};

/// Why the issuer is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is to read the configuration again.
    ReadAgain,
    /// The server has gone.
    ServerGone,
}

/// Serves until the server has gone, or has another configuration. The second socket leads to the warden. `confine` is called once all
/// is there that takes rights.
///
/// # Errors
/// If the state folder or the runtime cannot be had.
pub fn run(
    socket: OwnedFd,
    warden: OwnedFd,
    mut wishes: Wishes,
    confine: impl FnOnce() -> io::Result<()>,
) -> io::Result<Ended> {
    let mut state = StateFolder::open(&wishes.state_directory)?;
    if let Err(error) = state.share(wishes.certificates_group) {
        let whose = "their folders cannot be given to it";
        wishes.problems.push(format!(
            "no group reads the certificates: {whose}: {error}; start kettle as root, or as a user who is in the group"
        ));
    }
    confine()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = LocalSet::new().block_on(&runtime, async {
        let server = Server::new(socket)?;
        for problem in &wishes.problems {
            server.log(Level::Error, problem.clone());
        }
        let warden = Warden::new(warden, server.clone())?;
        Issuer::new(server, warden, state, wishes).run().await
    });
    // A lookup of a name may hang, and cannot be ended.
    runtime.shutdown_background();
    ended
}

struct Issuer {
    shared: Rc<Shared>,
    sites: Vec<SiteState>,
    /// For each authority, when orders of the last minute were begun.
    orders: Vec<RefCell<VecDeque<SystemTime>>>,
    jobs: JoinSet<Finished>,
    under_way: HashMap<Id, UnderWay>,
    clock: Clock,
    leads: bool,
    /// The number of times the lock was tried, and when it is tried again.
    locks_tried: u32,
    lock_again: TokioInstant,
    /// Until when orders under way are waited for, where another configuration is to be read.
    ends: Option<TokioInstant>,
}

/// A job that runs.
struct UnderWay {
    site: usize,
    room: Room,
}

/// The room that a job takes up: one of the few that an authority has at once.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Room {
    authority: usize,
    /// Nothing is ordered: it is asked when to renew.
    is_ask: bool,
}

/// The state of a site.
#[derive(Default)]
struct SiteState {
    standing: Standing,
    /// A job is under way.
    is_busy: bool,
    /// A rehearsal is asked for.
    rehearses: bool,
    /// The failure that was told last, and when.
    told: Option<(String, SystemTime)>,
    /// When it was said last that it is late, or that names are left out.
    told_urgent: Option<SystemTime>,
    /// Before this nothing is to be done.
    rests_until: Option<SystemTime>,
    /// The room for which it waits, as there was none.
    waits_for: Option<Room>,
    /// Until when it is waited for, until the certificate is in force, to run what is to be run then.
    after: Option<TokioInstant>,
}

/// A clock that never goes back while this process lives: one that was set back must not put renewals off.
struct Clock {
    wall: SystemTime,
    since: Instant,
}

impl Clock {
    fn now(&mut self) -> SystemTime {
        let now = SystemTime::now().max(self.wall + self.since.elapsed());
        *self = Self { wall: now, since: Instant::now() };
        now
    }
}

impl Issuer {
    fn new(server: Server, warden: Warden, state: StateFolder, wishes: Wishes) -> Self {
        let Wishes { authorities, sites, .. } = wishes;
        let client =
            |authority: &Authority| ClientTask::begin(authority.trust.clone(), Policy::default());
        let clients = authorities.iter().map(client).collect();
        let orders = authorities.iter().map(|_| RefCell::default()).collect();
        let states = sites.iter().map(|_| SiteState::default()).collect();
        let accounts = Accounts::default();
        let shared =
            Rc::new(Shared { server, warden, state, authorities, clients, sites, accounts });
        let clock = Clock { wall: SystemTime::UNIX_EPOCH, since: Instant::now() };
        Self {
            shared,
            sites: states,
            orders,
            jobs: JoinSet::new(),
            under_way: HashMap::new(),
            clock,
            leads: false,
            locks_tried: 0,
            lock_again: TokioInstant::now(),
            ends: None,
        }
    }

    async fn run(mut self) -> io::Result<Ended> {
        let server = self.shared.server.clone();
        self.lead()?;
        server.tell(Report::Begun { leads: self.leads });
        loop {
            // Whatever else it hears, such as a question a second.
            self.lead()?;
            if self.ends.is_some_and(|end| self.is_idle() || end <= TokioInstant::now()) {
                return Ok(Ended::ReadAgain);
            }
            let until = match self.ends {
                // A record in the DNS is taken away before that.
                Some(end) => end.min(TokioInstant::now() + IDLE_PAUSE),
                None => self.look(),
            };
            let order = tokio::select! {
                order = server.next_order() => order,
                Some(ended) = self.jobs.join_next_with_id() => {
                    self.end(ended);
                    continue;
                }
                () = sleep_until(until) => continue,
            };
            match order {
                Ok(Order::ReadAgain) => {
                    let end = TokioInstant::now() + finish_time(self.propagations());
                    self.ends.get_or_insert(end);
                }
                Ok(order) => self.obey(order),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(Ended::ServerGone);
                }
                // Whatever that was, it was no order.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(_) => return Ok(Ended::ServerGone),
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.shared.warden.is_idle()
    }

    /// Returns the time that records of orders under way take to reach all servers of their zones.
    fn propagations(&self) -> impl Iterator<Item = Duration> {
        let busy = self.shared.sites.iter().zip(&self.sites).filter(|(_, state)| state.is_busy);
        let by_record = busy.filter(|(site, _)| site.challenges.contains(&Kind::Dns));
        by_record.map(|(site, _)| site.propagation)
    }

    /// Takes the lock of the state folder, if it is time for that and no other issuer has it, and reads what is there.
    fn lead(&mut self) -> io::Result<()> {
        let now = TokioInstant::now();
        if self.leads || now < self.lock_again {
            return Ok(());
        }
        let pause = if self.locks_tried < LOCKS_TRIED_SOON { LOCK_PAUSE } else { LOOK_PERIOD };
        self.lock_again = now + pause;
        self.locks_tried = self.locks_tried.saturating_add(1);
        if !self.shared.state.lock()? {
            return Ok(());
        }
        self.leads = true;
        for (site, state) in self.shared.sites.iter().zip(&mut self.sites) {
            state.standing = self.shared.state.standing(&site.folder);
            state.standing.installed = site.installed(&self.shared.state);
            if self.shared.state.is_after_due(&site.folder) {
                state.after = Some(TokioInstant::now());
            }
            // An order for other names leads to a certificate that nobody wants.
            let purpose = state.standing.purpose(&site.names, &site.key_word);
            let is_for =
                |order: &OpenOrder| order.names == purpose.names && order.key == purpose.key;
            state.standing.order = state.standing.order.take().filter(is_for);
            for (number, orders) in self.orders.iter().enumerate() {
                if let Some(authority) = self.shared.authorities.get(number) {
                    let begun = state.standing.budget.begun_at(&authority.directory);
                    orders.borrow_mut().extend(begun);
                }
            }
            if let Some(until) = &mut state.standing.failures.wait_until {
                // A clock that was far ahead must not have the last word.
                *until = (*until).min(SystemTime::now() + WAIT_MAX);
            }
        }
        for orders in &self.orders {
            orders.borrow_mut().make_contiguous().sort_unstable();
        }
        process::release_free_memory();
        Ok(())
    }

    /// Begins what is due, as far as there is room, and says when to look again.
    fn look(&mut self) -> TokioInstant {
        let now = self.clock.now();
        if !self.leads {
            return self.lock_again;
        }
        let mut until = now + LOOK_PERIOD;
        for number in 0..self.sites.len() {
            let Some(next) = self.look_at(number, now) else { continue };
            // A look at ten thousand sites after each job would be a look at little else.
            let next = next.min(now + LOOK_PERIOD);
            until = until.min(next);
            if let Some(state) = self.sites.get_mut(number) {
                state.rests_until = Some(next);
            }
        }
        let pause = until.duration_since(now).unwrap_or_default();
        TokioInstant::now() + pause.max(PAUSE_MIN)
    }

    /// Begins what is due for a site, or says when to look again.
    fn look_at(&mut self, number: usize, now: SystemTime) -> Option<SystemTime> {
        self.run_after_in_time(number);
        let rests_until = self.sites.get(number)?.rests_until.filter(|until| now < *until);
        if rests_until.is_some() {
            return rests_until;
        }
        self.tell_urgent(number, now);
        let site = self.shared.sites.get(number)?;
        let state = self.sites.get(number)?;
        // Of ten thousand that wait, only those are thought about for which there is room.
        if state.is_busy || state.waits_for.is_some_and(|room| !self.has(room)) {
            return None;
        }
        if state.rehearses {
            self.begin(number, Work::Rehearse { authority: 0, is_asked_for: true });
            return None;
        }
        let wish = self.wish(site, now);
        let work = match plan::next(&wish, &state.standing, now) {
            Step::Rest { until } => return Some(until),
            Step::AskWindow { directory, certificate } => {
                let is_its_own = |it: &AuthorityWish<'_>| it.directory == directory;
                let authority = wish.authorities.iter().position(is_its_own)?;
                Work::AskWindow { authority, certificate }
            }
            Step::TryAlone { authority, name } => Work::TryAlone { authority, name },
            Step::Begin { authority, is_rehearsal: true, .. } => {
                Work::Rehearse { authority, is_asked_for: false }
            }
            Step::Begin { authority, replaces, is_rehearsal: false } => {
                Work::Order { authority, start: Start::New { replaces } }
            }
            Step::Resume { authority } => {
                let open = state.standing.order.clone()?;
                Work::Order { authority, start: Start::Open(open) }
            }
        };
        let room = room_of(site, &work);
        // One that does not answer holds up nobody else's. The end of one of its jobs is the next look.
        if self.has(room) {
            self.begin(number, work);
        } else if let Some(state) = self.sites.get_mut(number) {
            state.waits_for = Some(room);
        }
        None
    }

    /// True if an authority has room for such a job. Orders have some that questions do not take, however many sites have one.
    fn has(&self, room: Room) -> bool {
        let rooms = || self.under_way.values().map(|it| it.room);
        let jobs = rooms().filter(|it| it.authority == room.authority).count();
        let is_full = room.is_ask && rooms().filter(|it| *it == room).count() >= ASKS_MAX;
        jobs < JOBS_MAX && !is_full
    }

    fn wish<'a>(&'a self, site: &'a Site, now: SystemTime) -> SiteWish<'a> {
        let authority = |number: &usize| {
            let authority = self.shared.authorities.get(*number)?;
            let orders = self.orders.get(*number)?.borrow();
            let counting = orders.len().checked_sub(authority.orders_per_minute.max(1));
            let free = counting.and_then(|at| Some(*orders.get(at)? + ORDERS_COUNTED));
            Some(AuthorityWish {
                directory: &authority.directory,
                has_test_directory: authority.test_directory.is_some()
                    && !site.is_bound_to_account(),
                validations_per_hour: authority.validations_per_hour,
                free_from: free.filter(|free| now < *free),
            })
        };
        SiteWish {
            authorities: site.authorities.iter().filter_map(authority).collect(),
            names: &site.names,
            key: &site.key_word,
        }
    }

    fn begin(&mut self, number: usize, work: Work) {
        let now = self.clock.now();
        let Some(state) = self.sites.get_mut(number) else { return };
        let Some(site) = self.shared.sites.get(number) else { return };
        state.is_busy = true;
        state.rehearses = false;
        state.rests_until = None;
        state.waits_for = None;
        let room = room_of(site, &work);
        let authority = room.authority;
        if let (
            Work::Order { start: Start::New { .. }, .. }
            | Work::Rehearse { .. }
            | Work::TryAlone { .. },
            Some(orders),
        ) = (&work, self.orders.get(authority))
        {
            let mut orders = orders.borrow_mut();
            orders.retain(|begun| now.duration_since(*begun).is_ok_and(|age| age < ORDERS_COUNTED));
            orders.push_back(now);
        }
        let shared = Rc::clone(&self.shared);
        let standing = state.standing.clone();
        let job = self.jobs.spawn_local(async move {
            let mut standing = standing;
            let outcome = shared.carry_out(number, authority, &mut standing, work).await;
            Finished { site: number, authority, standing, outcome }
        });
        self.under_way.insert(job.id(), UnderWay { site: number, room });
    }
}

fn room_of(site: &Site, work: &Work) -> Room {
    let authority = site.authorities.get(work.authority()).copied().unwrap_or_default();
    Room { authority, is_ask: matches!(work, Work::AskWindow { .. }) }
}

/// Returns the time for which orders under way are waited for, where another configuration is to be read.
fn finish_time(propagations: impl Iterator<Item = Duration>) -> Duration {
    FINISH_TIME_MAX + propagations.max().unwrap_or_default().min(RECORDS_TIME_MAX)
}

/// The interval at which all is looked at, whatever the clock says meanwhile.
const LOOK_PERIOD: Duration = Duration::from_mins(1);

/// An order that is broken off while its names are validated would have failed.
const FINISH_TIME_MAX: Duration = Duration::from_secs(30);
/// Records that take longer are written anew.
const RECORDS_TIME_MAX: Duration = Duration::from_mins(5);

/// The issuer of a server that was killed may take a moment to go: so often the lock is tried again soon,
const LOCKS_TRIED_SOON: u32 = 10;
/// after this.
const LOCK_PAUSE: Duration = Duration::from_millis(500);

/// Programs that run for nobody any more are looked at again after this.
const IDLE_PAUSE: Duration = Duration::from_millis(200);

/// A mistake in here must not keep a processor busy.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Jobs under way at once at an authority.
const JOBS_MAX: usize = 8;

/// The number of them that may be questions when to renew.
const ASKS_MAX: usize = JOBS_MAX - 2;

/// The time in which orders are counted.
const ORDERS_COUNTED: Duration = Duration::from_mins(1);

/// No failure keeps a site waiting for longer.
const WAIT_MAX: Duration = Duration::from_hours(48);
