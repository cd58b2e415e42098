//! Backends and their servers, as `kettle ctl backends` shows them.

use std::fmt;

use kettle_upstream::backend::{BackendStatus, Backends};
use serde::{Deserialize, Serialize};

/// All backends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendsStatus(pub Vec<BackendStatus>);

impl From<&Backends> for BackendsStatus {
    fn from(backends: &Backends) -> Self {
        Self(backends.status())
    }
}

impl fmt::Display for BackendsStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(out, "there are no backends");
        }
        let names = self.0.iter().flat_map(|it| {
            it.servers.iter().map(move |server| it.name.len() + 1 + server.name.len())
        });
        let width = names.max().unwrap_or_default().max("server".len());
        writeln!(
            out,
            "{:<width$}  {:<13}  {:>11}  last failure",
            "server", "state", "connections"
        )?;
        for backend in &self.0 {
            for server in &backend.servers {
                let name = format!("{}/{}", backend.name, server.name);
                let most = server.connections_max.map_or(String::new(), |most| format!("/{most}"));
                let connections = format!("{}{most}", server.connections);
                let backup = if server.is_backup { " (backup)" } else { "" };
                let state = format!("{}{backup}", server.health.as_str());
                let failure = server.last_failure.as_deref().unwrap_or("-");
                writeln!(out, "{name:<width$}  {state:<13}  {connections:>11}  {failure}")?;
            }
            if backend.waiting > 0 {
                writeln!(
                    out,
                    "{:<width$}  {} wait for a server with room",
                    backend.name, backend.waiting
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kettle_upstream::backend::{Health, ServerStatus};

    use super::*;

    #[test]
    fn screen_has_a_line_for_each_server() {
        let server = |name: &str, health, connections_max| ServerStatus {
            name: name.to_owned(),
            address: "10.0.0.5:80".to_owned(),
            addresses: Vec::new(),
            health,
            is_backup: name == "spare",
            connections: 3,
            connections_max,
            last_failure: (health == Health::Down).then(|| "connection refused".to_owned()),
        };
        let status = BackendsStatus(vec![BackendStatus {
            name: "app".to_owned(),
            waiting: 2,
            servers: vec![server("one", Health::Up, Some(10)), server("spare", Health::Down, None)],
        }]);
        assert_eq!(
            status.to_string(),
            "server     state          connections  last failure\n\
             app/one    up                    3/10  -\n\
             app/spare  down (backup)            3  connection refused\n\
             app        2 wait for a server with room\n"
        );
        assert_eq!(BackendsStatus::default().to_string(), "there are no backends\n");
    }
}
