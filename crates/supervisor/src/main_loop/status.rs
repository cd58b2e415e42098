//! The answer of a server to `kettle ctl status`.

use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use kettle_runtime::metrics::Numbers;

use super::MainLoop;
use crate::admin::status::{Counts, ListenerStatus, SpoolStatus, Status};
use crate::{Supervisor, keeper};

impl MainLoop {
    pub(super) fn status(&self) -> Status {
        let Supervisor { live, metrics, spool, tx_path_switch, started, .. } = &self.supervisor;
        let config = &live.loaded().served.config;
        let listeners = live.bound().iter().zip(&config.listeners);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            uptime_seconds: started.elapsed().as_secs(),
            config: config.path.display().to_string(),
            listeners: listeners
                .map(|(bound, listener)| ListenerStatus {
                    address: bound.actual.to_string(),
                    kind: listener.kind.as_str().to_owned(),
                    path: listener.path().map(str::to_owned),
                })
                .collect(),
            tx_path: tx_path_switch.position(),
            tls: self.supervisor.tx_path_line(),
            sandbox: live.sandbox().to_string(),
            keeper: keeper::line(),
            issuer: self.issuer.line(),
            reloads_done: metrics.reloads_done.load(Relaxed),
            reloads_refused: metrics.reloads_refused.load(Relaxed),
            log_lines_dropped: metrics.log_lines_dropped.load(Relaxed),
            certificates: live.loaded().certificate_ends.status(SystemTime::now()),
            backends: self.backends().into(),
            spool: SpoolStatus::of(spool),
            total: Counts::from(&metrics.total()),
            workers: metrics
                .workers()
                .iter()
                .map(|worker| Counts::from(&Numbers::of(worker)))
                .collect(),
        }
    }
}
