//! `measure work`: instructions a server's process spends on one more request, for each path and size, on a kernel with kTLS. QEMU
//! counts them: one instruction is one nanosecond of the guest's time, so the process clock is the counter. Instructions are not
//! time, and the emulator counts every byte of `rep movsb`, so each figure is taken with and without fast string copies.

mod table;

use std::path::PathBuf;
use std::time::Duration;

use super::configs::{self, Place};
use super::native::commit;
use super::{Arguments, programs};
use crate::vm;
use crate::vm::cache::{Cache, create_folder, remove_folder};
use crate::vm::guest::Guest;
use crate::vm::image::Image;
use crate::vm::kernel::Kernel;
use crate::vm::qemu::Machine;
use table::{Calls, Work};

/// Measures everything and prints the tables.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let cache = Cache::open()?;
    let kettle = programs::kettle(arguments)?;
    let kernel = Kernel::Linux7.obtain(&cache)?;
    println!("- Linux {} under QEMU's emulator; instructions, not time", kernel.release);
    println!("- kettle: commit {}\n", commit()?);
    let servers: Vec<&Server> =
        SERVERS.iter().filter(|server| arguments.wants(server.name)).collect();
    let configs = lay_out(&servers)?;
    let guest = |erms: bool, plans: &str, count_calls: &str| Guest {
        kernel: Kernel::Linux7,
        image: Image::Measure,
        machine: Machine { icount: true, erms, cpus: 1, ..Machine::default() },
        files: vec![(configs.clone(), "measure".into()), (kettle.clone(), "kettle".into())],
        environment: vec![
            ("KETTLE_SERVERS".into(), names(&servers)),
            ("KETTLE_PLANS".into(), plans.into()),
            ("KETTLE_COUNT_CALLS".into(), count_calls.into()),
        ],
        command: vec!["sh".into(), "/kettle/measure/guest.sh".into()],
        out: vm::target_folder().join("vm/out"),
        limit: LIMIT,
    };
    for (erms, title) in [(false, "Without fast string copies"), (true, "With fast string copies")]
    {
        let mut work = Work::default();
        follow(&guest(erms, WORK_PLANS, "0"), &cache, &mut |line| work.take(line))?;
        println!("\n{title}, thousands of instructions for one more request:\n");
        println!("{}", work.table(&servers)?);
    }
    let mut calls = Calls::default();
    follow(&guest(false, CALL_PLANS, "1"), &cache, &mut |line| calls.take(line))?;
    println!("\nSystem calls of one more request:\n\n{}", calls.table(&servers));
    Ok(())
}

fn follow(guest: &Guest, cache: &Cache, on_line: &mut dyn FnMut(&str)) -> Result<(), String> {
    let report = guest.run(cache, on_line)?;
    match (report.status, report.failure) {
        (Some(0), _) => Ok(()),
        (Some(status), _) => Err(format!("the guest's script ended with {status}")),
        (None, failure) => Err(failure.unwrap_or_default()),
    }
}

/// A server with one configuration.
pub struct Server {
    /// Its name in the tables.
    pub name: &'static str,
    /// Whether its connections move into the kernel; unknown if that depends on the size.
    pub is_offloaded: Option<bool>,
    config: Config,
}

enum Config {
    Kettle { path: &'static str, hot_file: &'static str },
    Nginx { has_ktls: bool, has_sendfile: bool },
}

/// Makes the folder with the configurations, the certificate and the script, which the guest sees as `/kettle/measure`.
fn lay_out(servers: &[&Server]) -> Result<PathBuf, String> {
    let folder = vm::target_folder().join("vm/measure");
    remove_folder(&folder)?;
    create_folder(&folder)?;
    configs::make_certificate(&folder)?;
    configs::write(&folder.join("guest.sh"), SCRIPT)?;
    let place = Place { folder: "/kettle/measure", site: "/tmp/site", port: 8443 };
    for server in servers {
        let (text, ending) = match server.config {
            Config::Kettle { path, hot_file } => (place.kettle(path, hot_file), "toml"),
            Config::Nginx { has_ktls, has_sendfile } => {
                (place.nginx(has_ktls, has_sendfile), "conf")
            }
        };
        configs::write(&folder.join(format!("{}.{ending}", server.name)), &text)?;
    }
    Ok(folder)
}

fn names(servers: &[&Server]) -> String {
    servers.iter().map(|server| server.name).collect::<Vec<_>>().join(" ")
}

const SERVERS: &[Server] = &[
    Server {
        name: "kettle-user",
        is_offloaded: Some(false),
        config: Config::Kettle { path: "user", hot_file: "64 KiB" },
    },
    Server {
        name: "kettle-kernel-write",
        is_offloaded: Some(true),
        config: Config::Kettle { path: "kernel-write", hot_file: "64 KiB" },
    },
    Server {
        name: "kettle-kernel-sendfile",
        is_offloaded: Some(true),
        // With small files in memory there would be no file to send from.
        config: Config::Kettle { path: "kernel-sendfile", hot_file: "0 B" },
    },
    Server {
        name: "kettle-auto",
        is_offloaded: None,
        config: Config::Kettle { path: "auto", hot_file: "64 KiB" },
    },
    Server {
        name: "nginx-user",
        is_offloaded: Some(false),
        config: Config::Nginx { has_ktls: false, has_sendfile: true },
    },
    Server {
        name: "nginx-kernel-write",
        is_offloaded: Some(true),
        config: Config::Nginx { has_ktls: true, has_sendfile: false },
    },
    Server {
        name: "nginx-kernel-sendfile",
        is_offloaded: Some(true),
        config: Config::Nginx { has_ktls: true, has_sendfile: true },
    },
];

/// File (its size in KiB) and two numbers of requests; the difference is what counts.
const WORK_PLANS: &str = "1:20:220 4:20:220 16:20:120 64:10:50 256:4:20 1024:2:10 10240:1:3";
const CALL_PLANS: &str = "1:20:120 64:10:50 1024:2:10";

const SCRIPT: &str = include_str!("work/guest.sh");
const LIMIT: Duration = Duration::from_secs(3600);
