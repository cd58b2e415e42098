//! Implausible samples: clients asked again at once, and yet neither side was busy. Something stood still that no counter of
//! this machine knows of, such as the whole virtual machine, so such a sample is measured again.

use kettle_loadgen::load::{Load, LoadModel};

use super::measured::Measured;
use crate::figure;

/// Why a sample of this load is implausible; always `None` for a loop that is open, or too narrow to keep a side busy.
pub fn why(load: &Load, measured: &Measured) -> Option<String> {
    let LoadModel::Closed { connections: CONNECTIONS_MIN.. } = load.model else { return None };
    let usage = &measured.usage;
    let seconds = usage.elapsed.as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let server = usage.cpu.as_secs_f64() / seconds / measured.server_cpus.max(1) as f64;
    let client = measured.client_busy();
    // A side that others keep from its processor has no time to be busy.
    let taken_away = (usage.others + usage.steal).as_secs_f64() / seconds;
    (server.max(client) + taken_away < BUSY_MIN).then(|| {
        format!(
            "neither side was busy (server {:.0} %, client {:.0} % of a core; longest wait {}), which cannot be where \
             clients ask again at once",
            server * 100.0,
            client * 100.0,
            figure::quantity(measured.outcome.latency.max() as f64, "µs"),
        )
    })
}

/// With fewer connections both sides may wait for each other's wake-ups.
const CONNECTIONS_MIN: u32 = 4;
/// The busier side of a closed loop uses nearly all of its processor. More than this is never missing but by a standstill.
const BUSY_MIN: f64 = 0.75;

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use kettle_loadgen::load::End;

    use super::*;
    use crate::scenario::measured::tests::measured;

    /// A sample of two seconds with these shares of a processor.
    fn sample(server: f64, client: f64, others: f64) -> Measured {
        let mut sample = measured();
        sample.usage.elapsed = Duration::from_secs(2);
        sample.usage.cpu = Duration::from_secs_f64(2.0 * server);
        sample.usage.others = Duration::from_secs_f64(2.0 * others);
        sample.usage.steal = Duration::ZERO;
        (sample.server_cpus, sample.client_cpus) = (1, 1);
        sample.outcome.thread_busy = vec![client];
        sample
    }

    pub(in crate::scenario) fn closed(connections: u32) -> Load {
        Load {
            model: LoadModel::Closed { connections },
            end: End::After(Duration::from_secs(2)),
            ..Load::once(([127, 0, 0, 1], 443).into(), Duration::from_secs(2))
        }
    }

    #[test]
    fn a_closed_loop_with_both_sides_idle_is_implausible() {
        let why = why(&closed(100), &sample(0.09, 0.22, 0.0)).unwrap();
        assert!(why.contains("server 9 %, client 22 % of a core"), "{why}");
    }

    #[test]
    fn a_full_processor_of_the_client_explains_it_whoever_filled_it() {
        let mut terminated = sample(0.68, 0.45, 0.0);
        assert!(why(&closed(100), &terminated).is_some());
        terminated.usage.client = terminated.usage.elapsed;
        assert_eq!(why(&closed(100), &terminated), None);
    }

    #[test]
    fn a_busy_side_or_busy_neighbours_explain_it() {
        for (server, client, others) in [(0.95, 0.2, 0.0), (0.3, 0.9, 0.0), (0.3, 0.2, 1.1)] {
            assert_eq!(why(&closed(100), &sample(server, client, others)), None);
        }
    }

    #[test]
    fn one_connection_and_open_loops_may_be_idle() {
        assert_eq!(why(&closed(1), &sample(0.09, 0.22, 0.0)), None);
        let idle = LoadModel::Idle { connections: 100, requests: 1 };
        assert_eq!(why(&Load { model: idle, ..closed(1) }, &sample(0.09, 0.22, 0.0)), None);
    }
}
