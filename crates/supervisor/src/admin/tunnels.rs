//! Open tunnels: the workers are asked for them, and `kettle ctl tunnels` shows them.

use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};

use kettle_server::open_tunnels::{
    FlowStatus, TunnelOrder, TunnelStatus, TunnelsQuestion, TunnelsStatus,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout_at;

use super::status::{Bytes, Uptime};

/// The most that are told one by one: an answer is one message.
pub const TOP_MAX: usize = 1_000;

/// Asks each worker, and waits for a moment.
pub(crate) async fn ask(
    workers: Vec<mpsc::Sender<TunnelsQuestion>>,
    top: usize,
    order: TunnelOrder,
) -> TunnelsStatus {
    let top = top.min(TOP_MAX);
    let asked = workers.iter().map(|worker| {
        let (answer, answered) = oneshot::channel();
        // A worker that is asked already and does not answer is not asked more.
        worker.try_send(TunnelsQuestion { top, order, answer }).ok().map(|()| answered)
    });
    let asked: Vec<_> = asked.collect();
    let deadline = Instant::now() + ANSWER_TIME_MAX;
    let mut parts = Vec::with_capacity(asked.len());
    for answered in asked {
        let answer = match answered {
            Some(answered) => timeout_at(deadline.into(), answered).await.ok().and_then(Result::ok),
            None => None,
        };
        let silent = || TunnelsStatus { silent_workers: 1, ..TunnelsStatus::default() };
        parts.push(answer.unwrap_or_else(silent));
    }
    TunnelsStatus::of_all(parts, top, order)
}

/// Open tunnels, for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TunnelsScreen(pub TunnelsStatus);

impl fmt::Display for TunnelsScreen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(status) = self;
        if !status.tunnels.is_empty() {
            let rows: Vec<_> = [TITLES.map(str::to_owned)]
                .into_iter()
                .chain(status.tunnels.iter().map(columns))
                .collect();
            write_table(&rows, out)?;
        }
        let open = status.open;
        let (verb, s) = if open == 1 { ("is", "") } else { ("are", "s") };
        let backends = status.to_backend_bytes;
        let clients = status.to_client_bytes;
        write!(
            out,
            "{open} tunnel{s} {verb} open: {} to backends, {} to clients",
            Bytes(backends),
            Bytes(clients)
        )?;
        let shown = status.tunnels.len();
        if u64::try_from(shown).is_ok_and(|shown| shown < open) {
            write!(out, "; {shown} of them are shown")?;
        }
        match status.silent_workers {
            0 => writeln!(out),
            silent => writeln!(out, "; without those of {silent} workers that did not answer"),
        }
    }
}

fn columns(tunnel: &TunnelStatus) -> [String; TITLES.len()] {
    let path = |flow: &FlowStatus| flow.path.clone().unwrap_or_else(|| "-".to_owned());
    let server = match &tunnel.server {
        Some(server) => format!("{}/{server}", tunnel.backend),
        None => tunnel.backend.clone(),
    };
    [
        Uptime(tunnel.age_seconds).to_string(),
        Uptime(tunnel.idle_seconds).to_string(),
        tunnel.client.to_string(),
        tunnel.listener.to_string(),
        // Anything may stand in a ClientHello.
        tunnel.server_name.as_deref().unwrap_or("-").escape_debug().to_string(),
        server,
        Bytes(tunnel.to_backend.bytes).to_string(),
        path(&tunnel.to_backend),
        Bytes(tunnel.to_client.bytes).to_string(),
        path(&tunnel.to_client),
    ]
}

fn write_table<const N: usize>(rows: &[[String; N]], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    for row in rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            write!(line, "{cell:<width$}  ")?;
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

const TITLES: [&str; 10] = [
    "age",
    "idle",
    "client",
    "listener",
    "name",
    "server",
    "to backend",
    "path",
    "to client",
    "path",
];

/// A worker has its turns in microseconds; one that is stuck is not waited for.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn tunnel(connection: u64, bytes: u64) -> TunnelStatus {
        let flow =
            |bytes, path: &str| FlowStatus { bytes, path: Some(path.to_owned()), reason: None };
        TunnelStatus {
            connection,
            age_seconds: 3_700,
            idle_seconds: 7,
            client: "192.0.2.7:40000".parse().unwrap(),
            listener: "0.0.0.0:443".parse().unwrap(),
            server_name: Some("a.example".to_owned()),
            backend: "app".to_owned(),
            server: Some("10.0.0.5:80".to_owned()),
            to_backend: flow(12, "user"),
            to_client: flow(bytes, "kernel-splice"),
        }
    }

    #[test]
    fn screen_has_a_line_for_each_tunnel_and_a_sum() {
        let begun = TunnelStatus {
            age_seconds: 1,
            idle_seconds: 0,
            server_name: None,
            server: None,
            to_backend: FlowStatus::default(),
            to_client: FlowStatus::default(),
            ..tunnel(9, 0)
        };
        let status = TunnelsStatus {
            open: 3,
            to_backend_bytes: 24,
            to_client_bytes: 3 << 20,
            silent_workers: 0,
            tunnels: vec![begun, tunnel(8, 1 << 20)],
        };
        assert_eq!(
            TunnelsScreen(status).to_string(),
            "age        idle  client           listener     name       server           to backend  path  to client  path\n\
             1 s        0 s   192.0.2.7:40000  0.0.0.0:443  -          app              0 B         -     0 B        -\n\
             1 h 1 min  7 s   192.0.2.7:40000  0.0.0.0:443  a.example  app/10.0.0.5:80  12 B        user  1.0 MiB    kernel-splice\n\
             3 tunnels are open: 24 B to backends, 3.0 MiB to clients; 2 of them are shown\n"
        );
        let none = TunnelsStatus { silent_workers: 1, ..TunnelsStatus::default() };
        assert_eq!(
            TunnelsScreen(none).to_string(),
            "0 tunnels are open: 0 B to backends, 0 B to clients; without those of 1 workers that did not answer\n"
        );
    }

    #[test]
    fn what_workers_say_is_put_in_one_order() {
        let worker = |tunnels: Vec<TunnelStatus>| TunnelsStatus {
            open: 5,
            to_backend_bytes: 1,
            to_client_bytes: 2,
            silent_workers: 0,
            tunnels,
        };
        let parts = || [worker(vec![tunnel(9, 10), tunnel(3, 70)]), worker(vec![tunnel(5, 30)])];
        let shown = |order| {
            let all = TunnelsStatus::of_all(parts(), 2, order);
            assert_eq!((all.open, all.to_backend_bytes, all.to_client_bytes), (10, 2, 4));
            all.tunnels.iter().map(|tunnel| tunnel.connection).collect::<Vec<_>>()
        };
        assert_eq!(shown(TunnelOrder::Newest), [9, 5]);
        assert_eq!(shown(TunnelOrder::Oldest), [3, 5]);
        assert_eq!(shown(TunnelOrder::Bytes), [3, 5]);
    }

    #[tokio::test]
    async fn a_worker_that_is_gone_is_named_silent() {
        let (sender, receiver) = mpsc::channel(1);
        drop(receiver);
        assert_eq!(ask(vec![sender], 10, TunnelOrder::Newest).await.silent_workers, 1);
    }
}
