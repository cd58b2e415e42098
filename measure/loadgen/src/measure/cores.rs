//! Which processors the server gets and which the client, so that neither works on the other's.

use std::collections::BTreeSet;

use kettle_kernel::process::cpus_allowed;

use super::line;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The server's, one for each worker.
    pub server: Vec<usize>,
    /// The client's, one for each thread.
    pub client: Vec<usize>,
    /// The doubts about this division, a sentence each.
    pub warnings: Vec<String>,
}

/// Divides the processors this process may use. The server gets as many as it asks for or there is no division at all; the
/// client may get fewer than it asks for, which is then a warning.
///
/// # Errors
/// A sentence for the user: this process may use too few processors for both.
pub fn choose(server: usize, client: usize) -> Result<Cores, String> {
    let processors: Vec<Processor> = cpus_allowed().into_iter().map(Processor::read).collect();
    divide(&processors, server, client)
}

/// A processor as Linux counts them: a hardware thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Processor {
    number: usize,
    package: usize,
    /// The lowest number among the hardware threads of its core, which names the core.
    core: usize,
    /// Its speed, in any unit: hybrid processors have slow cores too.
    capacity: u64,
}

impl Processor {
    /// An unknown one is taken to be a core of its own, as fast as any other.
    fn read(number: usize) -> Self {
        let folder = format!("/sys/devices/system/cpu/cpu{number}");
        let file = |name: &str| line(format!("{folder}/{name}"));
        let siblings = file("topology/thread_siblings_list").map(|text| numbers(&text));
        let capacity = file("cpu_capacity").or_else(|| file("cpufreq/cpuinfo_max_freq"));
        Self {
            number,
            package: file("topology/physical_package_id")
                .and_then(|it| it.parse().ok())
                .unwrap_or(0),
            core: siblings.and_then(|all| all.first().copied()).unwrap_or(number),
            capacity: capacity.and_then(|it| it.parse().ok()).unwrap_or(0),
        }
    }
}

fn divide(processors: &[Processor], server: usize, client: usize) -> Result<Cores, String> {
    let server = server.max(1);
    let client = client.max(1);
    if processors.len() <= server {
        return Err(format!(
            "{server} for the server and at least one for the client, but this process may use {}: a client on the server's \
             processors would measure itself",
            processors.len()
        ));
    }
    let order = in_order(processors);
    let (for_server, rest) = order.split_at(server);
    // The client takes cores the server has no part of first.
    let of_server: BTreeSet<usize> = for_server.iter().map(|it| it.core).collect();
    let (beside, apart): (Vec<&Processor>, Vec<&Processor>) =
        rest.iter().partition(|it| of_server.contains(&it.core));
    let for_client: Vec<&Processor> = apart.into_iter().chain(beside).take(client).collect();
    let mut warnings = Vec::new();
    if for_client.iter().any(|it| of_server.contains(&it.core)) {
        warnings.push(
            "client and server use hardware threads of the same core: each slows the other"
                .to_owned(),
        );
    }
    if for_client.len() < client {
        warnings.push(format!(
            "the client asked for {client} processors and got {}: it may be what limits",
            for_client.len()
        ));
    }
    if of_server.len() < server {
        warnings.push(format!(
            "the server's {server} processors are hardware threads of {} cores",
            of_server.len()
        ));
    }
    if for_server.iter().any(|it| Some(it.capacity) != for_server.first().map(|it| it.capacity)) {
        warnings.push("the server's processors are not equally fast".to_owned());
    }
    let packages: BTreeSet<usize> =
        for_server.iter().chain(for_client.iter().copied()).map(|it| it.package).collect();
    if packages.len() > 1 {
        warnings.push(format!("client and server are spread over {} sockets", packages.len()));
    }
    let mut server: Vec<usize> = for_server.iter().map(|it| it.number).collect();
    let mut client: Vec<usize> = for_client.iter().map(|it| it.number).collect();
    server.sort_unstable();
    client.sort_unstable();
    Ok(Cores { server, client, warnings })
}

/// The best for a server first: fast ones, one thread of each core before the second of any, one socket before the next. The
/// highest number goes first among equals, because the lowest processor has most of the machine's interrupts.
fn in_order(processors: &[Processor]) -> Vec<Processor> {
    let mut order = processors.to_vec();
    let turn = |it: &Processor| {
        processors.iter().filter(|o| o.core == it.core && o.number < it.number).count()
    };
    order.sort_by_key(|it| {
        (std::cmp::Reverse(it.capacity), turn(it), it.package, std::cmp::Reverse(it.number))
    });
    order
}

/// A list as the kernel writes it: `0-3,8,10-11`.
fn numbers(text: &str) -> Vec<usize> {
    let mut all = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            all.extend((first..=last).take(PROCESSORS_MAX));
        }
    }
    all
}

/// More than any machine has.
const PROCESSORS_MAX: usize = 8192;

#[cfg(test)]
mod tests;
