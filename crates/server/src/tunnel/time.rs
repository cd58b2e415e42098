//! The time a tunnel lasts: as long as its bytes go, and its client shortly behind the end of what its backend says.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use kettle_runtime::deadlines::{Deadline, Interrupt, Stage, TICK};

use super::Carried;
use crate::open_tunnels::OpenTunnel;
use crate::relay::{Relay, TunnelEnd};

/// The time a tunnel may last.
pub(super) struct Time {
    /// Without a byte in either direction.
    pub(super) idle: Duration,
    /// In all.
    pub(super) end: Option<Instant>,
}

/// The progress of a client whose backend has said all.
#[derive(Clone, Copy, Default)]
struct Rest {
    /// Since when it has been told so, in ticks.
    told: Option<u32>,
    /// Since when it has all that the backend said.
    delivered: Option<u32>,
}

impl Rest {
    /// True if the client has come further.
    fn advances(self, relay: &Relay) -> bool {
        match self {
            Self { told: None, .. } => relay.has_told_backend_end(),
            Self { delivered: None, .. } => relay.client_has_all(),
            _ => false,
        }
    }

    fn advance(&mut self, relay: &Relay, ticks: u32) {
        if relay.has_told_backend_end() {
            self.told.get_or_insert(ticks);
        }
        if relay.client_has_all() {
            self.delivered.get_or_insert(ticks);
        }
    }
}

/// Since when nothing happens, and when to look whether a side is lost.
#[derive(Clone, Copy)]
struct Quiet {
    /// Since when no byte has gone either way, in ticks.
    since: u32,
    /// When to look whether what was sent arrives: not if nothing is on its way.
    look: Option<u32>,
}

impl Quiet {
    /// The bytes that went in front of the tunnel may be on their way, too.
    fn new(ticks: u32) -> Self {
        Self { since: ticks, look: Some(ticks.saturating_add(LOOK_TICKS)) }
    }

    fn interrupted(&mut self, ticks: u32) {
        self.since = ticks;
        self.look.get_or_insert(ticks.saturating_add(LOOK_TICKS));
    }

    /// Returns the rest of the time that it may last, or the time until the next look.
    fn left(self, most: Duration, ticks: u32) -> Duration {
        let left = most.saturating_sub(since(self.since, ticks));
        self.look.map_or(left, |look| left.min(TICK * look.saturating_sub(ticks)))
    }

    /// Looks if that is due. The relay does in its next turn what a lost side means for the other.
    fn has_looked(&mut self, relay: &mut Relay, ticks: u32) -> bool {
        let is_due = self.look.is_some_and(|look| look <= ticks);
        if is_due {
            self.look = relay.lose_lost().then(|| ticks.saturating_add(LOOK_TICKS));
        }
        is_due
    }
}

impl Time {
    /// The time it may last if nothing happens from now on.
    fn left(&self, rest: Rest, quiet: Quiet, ticks: u32) -> Duration {
        let most = match (rest.told, rest.delivered) {
            (_, Some(begun)) => REST_SILENCE_MAX.min(REST_MAX.saturating_sub(since(begun, ticks))),
            // Nothing tells that it has arrived, so that is looked at again and again.
            (Some(_), None) => TICK,
            (None, None) => quiet.left(self.idle, ticks),
        };
        let idle = self.idle.min(most);
        self.end.map_or(idle, |end| idle.min(end.saturating_duration_since(Instant::now())))
    }

    /// True if what the backend said may arrive yet.
    fn is_worth_another_look(&self, rest: Rest, ticks: u32) -> bool {
        let limit = UNDELIVERED_MAX.min(self.idle);
        rest.delivered.is_none() && rest.told.is_some_and(|told| since(told, ticks) < limit)
    }

    /// True if it is over in all, or will be so soon.
    fn is_over_within(&self, soon: Duration) -> bool {
        self.end.is_some_and(|end| end <= Instant::now() + soon)
    }
}

fn since(begun: u32, ticks: u32) -> Duration {
    TICK * ticks.saturating_sub(begun)
}

/// True if both sides are given as much time again to receive what was sent to them. A side that receives a segment now and
/// then could make a tunnel last for days: one whose time is over, or was before its end, has no second round.
pub(super) fn goes_on_lingering(
    end: TunnelEnd,
    time: &Time,
    before_bytes: usize,
    unacknowledged_bytes: usize,
) -> bool {
    let is_cut = matches!(end, TunnelEnd::Idle | TunnelEnd::TooLong | TunnelEnd::Draining);
    let is_time_over = is_cut || time.is_over_within(Duration::ZERO);
    !is_time_over && 0 < unacknowledged_bytes && unacknowledged_bytes < before_bytes
}

/// Carries bytes until both directions have ended or the time is over.
pub(super) async fn run(
    carried: &mut Carried,
    deadline: &Deadline,
    time: &Time,
    shown: &OpenTunnel,
) -> TunnelEnd {
    let Carried { relay, slot, .. } = carried;
    let mut progress = relay.progress();
    let mut rest = Rest::default();
    let mut quiet = Quiet::new(deadline.ticks());
    shown.carried(relay.flows(), deadline.ticks());
    let end = loop {
        deadline.extend(time.left(rest, quiet, deadline.ticks()));
        // To a client that has all nothing is owed.
        let stage = if rest.delivered.is_some() { Stage::Idle } else { Stage::UnderWay };
        let carry = |context: &mut Context<'_>| {
            let polled = relay.poll(context);
            // A client that takes slowly what came before keeps nobody else from a server that has none of it.
            if relay.has_lost_backend() {
                *slot = None;
            }
            if relay.progress() != progress {
                // A tunnel that is never idle ends at its time limit all the same.
                if polled.is_pending() && time.is_over_within(Duration::ZERO) {
                    return Poll::Ready(None);
                }
                progress = relay.progress();
                shown.carried(relay.flows(), deadline.ticks());
                quiet.interrupted(deadline.ticks());
                deadline.extend(time.left(rest, quiet, deadline.ticks()));
            }
            match polled {
                Poll::Pending if rest.advances(relay) => Poll::Ready(None),
                polled => polled.map(Some),
            }
        };
        match deadline.wait(stage, carry).await {
            Ok(Some(end)) => return end,
            // Its client was told so, has all, and neither ends nor says anything.
            Err(Interrupt::Draining) if rest.delivered.is_some() => break TunnelEnd::BackendClosed,
            Err(Interrupt::Draining) => break TunnelEnd::Draining,
            // A deadline is kept in whole ticks.
            Ok(None) | Err(Interrupt::Expired) if time.is_over_within(TICK) => {
                break TunnelEnd::TooLong;
            }
            Ok(None) => rest.advance(relay, deadline.ticks()),
            Err(Interrupt::Expired)
                if rest.told.is_none() && quiet.has_looked(relay, deadline.ticks()) => {}
            Err(Interrupt::Expired) if time.is_worth_another_look(rest, deadline.ticks()) => {}
            Err(Interrupt::Expired) if rest.told.is_some() => break TunnelEnd::BackendClosed,
            Err(Interrupt::Expired) => break TunnelEnd::Idle,
        }
    };
    relay.cut(end);
    end
}

/// The time a client may say nothing once it has all that its backend said, and how long that may last. Many that keep connections
/// for later close them only when they want the next one, and until then each has a place at its server.
const REST_SILENCE_MAX: Duration = Duration::from_secs(5);
const REST_MAX: Duration = Duration::from_secs(30);

/// From look to look whether what was sent arrives.
const LOOK_TICKS: u32 = 10;

/// The time a client may take to receive that. The client gets the rest then all the same, but it has no place at its server
/// any more.
const UNDELIVERED_MAX: Duration = Duration::from_mins(1);
