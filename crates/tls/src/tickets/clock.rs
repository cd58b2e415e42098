//! The clocks that ticket keys change by.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kettle_kernel::process::time_since_boot;

/// Time since an arbitrary moment.
pub(crate) type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A clock of this machine alone, and one that hosts have in common.
pub(crate) struct Clocks {
    /// Never goes back, so that a corrected clock keeps no key alive, and goes on while the machine is suspended.
    since_boot: Clock,
    /// Since 1970. Somebody may set it.
    wall: Clock,
    /// By how many nanoseconds the wall clock was ahead of the time since the start of the machine, at most.
    lead: AtomicU64,
}

impl Clocks {
    /// Those of the system.
    pub(super) fn of_system() -> Self {
        let wall = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::new(Arc::new(time_since_boot), Arc::new(wall))
    }

    pub(super) fn new(since_boot: Clock, wall: Clock) -> Self {
        Self { since_boot, wall, lead: AtomicU64::new(0) }
    }

    pub(super) fn since_boot(&self) -> Duration {
        (self.since_boot)()
    }

    /// By the wall clock, but never back and never slower than the time since the start of the machine: a clock that is
    /// set back while this process runs lengthens no session.
    pub(super) fn since_1970(&self) -> Duration {
        // In this order a thread that waits between the two sees a smaller lead, not a larger one that would stay.
        let wall = (self.wall)();
        let since_boot = (self.since_boot)();
        let lead = nanoseconds(wall.saturating_sub(since_boot));
        let lead = self.lead.fetch_max(lead, Relaxed).max(lead);
        since_boot + Duration::from_nanos(lead)
    }
}

/// Enough for 584 years.
pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
