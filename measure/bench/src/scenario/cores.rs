//! Whose processors are whose: as the user says, or as many for the servers as for the client.

use std::collections::BTreeSet;

use kettle_kernel::process::cpus_allowed;
use kettle_loadgen::measure::cores::{self, Cores};

use super::error::BenchError;
use super::options::Options;

/// Processors for servers and client.
pub fn choose(options: &Options) -> Result<Cores, BenchError> {
    let allowed = cpus_allowed();
    match (&options.server_cpus, &options.client_cpus) {
        (None, None) => {
            let asked = || options.workers.iter().flatten().copied();
            // Those of several that do not fit are refused by the scenario that compares them, the others are measured.
            let workers = asked().filter(|it| *it < allowed.len()).max().or_else(|| asked().max());
            let server = workers.unwrap_or(allowed.len() / 2).max(1);
            let client = allowed.len().saturating_sub(server).max(1);
            cores::choose(server, client).map_err(BenchError::Refused)
        }
        (server, client) => named(&allowed, server.as_deref(), client.as_deref()),
    }
}

fn named(
    allowed: &[usize],
    server: Option<&[usize]>,
    client: Option<&[usize]>,
) -> Result<Cores, BenchError> {
    let rest = |taken: &[usize]| -> Vec<usize> {
        allowed.iter().copied().filter(|cpu| !taken.contains(cpu)).collect()
    };
    let sorted = |cpus: &[usize]| -> Vec<usize> {
        cpus.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
    };
    let server =
        sorted(&server.map_or_else(|| rest(client.unwrap_or_default()), <[usize]>::to_vec));
    let client = sorted(&client.map_or_else(|| rest(&server), <[usize]>::to_vec));
    if let Some(cpu) = server.iter().chain(&client).find(|cpu| !allowed.contains(cpu)) {
        let allowed: Vec<_> = allowed.iter().map(usize::to_string).collect();
        let allowed = allowed.join(", ");
        return Err(BenchError::Refused(format!(
            "this process may not use CPU {cpu}; it may use {allowed}"
        )));
    }
    if server.is_empty() || client.is_empty() {
        return Err(BenchError::Refused(
            "no CPU is left for the other side: a client on the server's CPUs would measure itself; leave it one with \
             --server-cpus or --client-cpus"
                .to_owned(),
        ));
    }
    let mut warnings = Vec::new();
    if server.iter().any(|cpu| client.contains(cpu)) {
        warnings.push("client and server share CPUs, as asked: each slows the other".to_owned());
    }
    Ok(Cores { server, client, warnings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_that_is_not_named_gets_the_rest() {
        let cores = named(&[0, 1, 2, 3], Some(&[3, 1]), None).unwrap();
        assert_eq!((cores.server, cores.client), (vec![1, 3], vec![0, 2]));
        let cores = named(&[0, 1, 2, 3], None, Some(&[0])).unwrap();
        assert_eq!((cores.server, cores.client), (vec![1, 2, 3], vec![0]));
        assert_eq!(cores.warnings, [""; 0]);
    }

    #[test]
    fn shared_cpus_are_allowed_and_said() {
        let cores = named(&[0, 1], Some(&[0]), Some(&[0])).unwrap();
        assert_eq!(cores.warnings.len(), 1);
    }

    #[test]
    fn nothing_left_is_refused() {
        let error = named(&[0, 1], Some(&[0, 1]), None).unwrap_err().to_string();
        assert!(error.contains("would measure itself"), "{error}");
        let error = named(&[0], Some(&[5]), Some(&[0])).unwrap_err().to_string();
        assert!(error.contains("CPU 5"), "{error}");
    }
}
