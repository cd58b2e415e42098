//! `measure work`: what a server does for one more request, for each path and size, on a kernel with kTLS under QEMU: instructions,
//! bytes copied and filled, AES blocks, system calls, switches, pages. A plugin of the emulator counts them; docs/work.md says how
//! that is checked and what it does not show. `--check` holds a short vector against the committed one.

mod counter;
mod gate;
mod record;
mod servers;
mod table;
mod vector;
mod window;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::{MeasureArguments, commit, programs};
use crate::checkout;
use crate::files::{self, create_folder, remove_folder};
use crate::vm::cache::Cache;
use crate::vm::disk;
use crate::vm::guest::Guest;
use crate::vm::image::Image;
use crate::vm::kernel::Kernel;
use crate::vm::qemu::Machine;
use counter::Counter;
pub use gate::{Verdict, check, complaint};
use record::Record;
use servers::{MeasuredServer, SERVERS};
use table::Calls;
use vector::{GuestLines, Vector};

/// Measures everything, prints the tables and writes the results.
pub fn run(arguments: &MeasureArguments) -> Result<(), String> {
    if arguments.is_check || arguments.is_blessing {
        return gate::run(arguments);
    }
    let kettle = programs::kettle(arguments)?;
    let servers: Vec<&MeasuredServer> =
        SERVERS.iter().filter(|server| arguments.wants(server.name)).collect();
    let rounds = arguments.rounds.unwrap_or(ROUNDS);
    let bed = Bed::new(Image::Measure, kettle, &servers, "release")?;
    println!("- QEMU {}; work, not time", bed.qemu);
    println!("- kettle: commit {}\n", commit()?);
    let plans =
        if arguments.is_thorough { format!("{PLANS} {THOROUGH}") } else { PLANS.to_owned() };
    let mut vectors = Vec::new();
    let mut machine = None;
    let shown = &mut std::io::stdout();
    for erms in [true, false] {
        let (lines, found) = bed.count(erms, &plans, rounds, shown)?;
        vectors.extend(found);
        machine.get_or_insert(lines);
    }
    let Some(lines) = machine else { return Err("nothing was measured".into()) };
    println!("\n{}", table::all(&vectors, &servers));
    if arguments.is_thorough {
        let mut calls = Calls::default();
        bed.follow(&bed.guest(false, CALL_PLANS, 1, true)?, shown, &mut |line| calls.take(line))?;
        println!("\nSystem calls of one more request by name:\n\n{}", calls.table(&servers));
    }
    let path =
        arguments.output.clone().unwrap_or_else(|| checkout::target_folder().join("work.jsonl"));
    Record { bed: &bed, lines: &lines, vectors: &vectors }.write(&path)?;
    println!("\nresults: {}", path.display());
    Ok(())
}

pub struct Bed<'s> {
    cache: Cache,
    image: Image,
    kettle: PathBuf,
    profile: &'static str,
    servers: Vec<&'s MeasuredServer>,
    folder: PathBuf,
    counter: Counter,
    qemu: String,
}

impl<'s> Bed<'s> {
    fn new(
        image: Image,
        kettle: PathBuf,
        servers: &[&'s MeasuredServer],
        profile: &'static str,
    ) -> Result<Self, String> {
        let qemu = counter::qemu_version()?;
        let counter = Counter::build(checkout::target_folder().join("vm/counter"))?;
        let folder = lay_out(servers, &counter.programs())?;
        let servers = servers.to_vec();
        Ok(Self { cache: Cache::open()?, image, kettle, profile, servers, folder, counter, qemu })
    }

    /// Runs one guest and takes its counts.
    fn count(
        &self,
        erms: bool,
        plans: &str,
        rounds: usize,
        shown: &mut dyn Write,
    ) -> Result<(GuestLines, Vec<Vector>), String> {
        let mut lines = GuestLines::default();
        let guest = self.guest(erms, plans, rounds, false)?;
        self.follow(&guest, shown, &mut |line| lines.take(line))?;
        let vectors = lines.vectors(&self.counter.windows()?, &self.servers, erms)?;
        Ok((lines, vectors))
    }

    fn guest(
        &self,
        erms: bool,
        plans: &str,
        rounds: usize,
        by_name: bool,
    ) -> Result<Guest, String> {
        let names: Vec<_> = self.servers.iter().map(|server| server.name).collect();
        let plugin = if by_name { None } else { Some(self.counter.plugin()?) };
        Ok(Guest {
            kernel: Kernel::Linux7,
            image: self.image,
            machine: Machine { icount: true, plugin, erms, cpus: 1, ..Machine::default() },
            files: vec![
                (self.folder.clone(), "measure".into()),
                (self.kettle.clone(), "kettle".into()),
            ],
            environment: vec![
                ("KETTLE_SERVERS".into(), names.join(" ")),
                ("KETTLE_PLANS".into(), plans.into()),
                ("KETTLE_ROUNDS".into(), rounds.to_string()),
                ("KETTLE_COUNT_CALLS".into(), u8::from(by_name).to_string()),
            ],
            command: vec!["sh".into(), "/kettle/measure/guest.sh".into()],
            out: checkout::target_folder().join("vm/out"),
            limit: LIMIT,
        })
    }

    fn follow(
        &self,
        guest: &Guest,
        shown: &mut dyn Write,
        on_line: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        guest.run(&self.cache, shown, on_line)?.into_result()
    }
}

/// Makes the folder that the guest sees as `/kettle/measure`: configurations, what is served, the script and its helper.
fn lay_out(servers: &[&MeasuredServer], programs: &[PathBuf]) -> Result<PathBuf, String> {
    let folder = checkout::target_folder().join("vm/measure");
    remove_folder(&folder)?;
    create_folder(&folder.join("site"))?;
    files::write(folder.join("guest.sh"), SCRIPT)?;
    for program in programs {
        let name = program.file_name().unwrap_or_default();
        files::copy(program, folder.join(name))?;
    }
    for kibibytes in SITE {
        let path = folder.join(format!("site/{kibibytes}"));
        let body: Vec<u8> = (0..kibibytes * 1024).map(|offset| noise(offset as u64)).collect();
        files::write(&path, body)?;
    }
    let empty = checkout::target_folder().join("vm/empty");
    create_folder(&empty)?;
    disk::build(&empty, &folder.join("store.ext4"))?;
    disk::build(&folder.join("site"), &folder.join("site.ext4"))?;
    for server in servers {
        let (text, ending) = server.config();
        files::write(folder.join(format!("{}.{ending}", server.name)), &text)?;
    }
    Ok(folder)
}

/// A byte that is the same in each run and nothing that a file system or a cipher could shorten.
fn noise(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

const SITE: &[usize] = &[1, 4, 16, 64, 256, 1024, 10240];

/// Size in KiB and two numbers of requests; the difference is what counts.
const PLANS: &str = "1:20:220 16:20:120 64:10:50 256:4:20 1024:2:10";
const THOROUGH: &str = "4:20:220 10240:1:3";
const CALL_PLANS: &str = "1:20:120 64:10:50 1024:2:10";
const ROUNDS: usize = 2;

const SCRIPT: &str = include_str!("work/guest.sh");
const LIMIT: Duration = Duration::from_secs(3600);
