//! Days of an outage: a guest in which this program sees them. Its clock stands still for nobody: whenever all wait, it jumps to what is
//! waited for next, and all clocks and timers with it.

use std::env;
use std::io::stdout;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::super::MeasureArguments;
use super::server::IN_GUEST;
use crate::files;
use crate::vm::cache::Cache;
use crate::vm::guest::Guest;
use crate::vm::image::Image;
use crate::vm::kernel::Kernel;
use crate::vm::qemu::Machine;
use crate::{checkout, go};

/// Sees all in a guest, and gives what it wrote.
pub fn run(arguments: &MeasureArguments) -> Result<Value, String> {
    let programs = super::obtain_programs(arguments)?;
    let this = env::current_exe().map_err(|error| format!("which program is this? {error}"))?;
    let mut files = vec![
        (this, "xtask".to_owned()),
        (programs.kettle, "kettle".to_owned()),
        (programs.caddy, "caddy".to_owned()),
    ];
    let named = |path: PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some((path, name))
    };
    files.extend(go::pebble().filter_map(named));
    let script = format!("{SCRIPT} --only '{}'", arguments.only.join(","));
    let out = checkout::target_folder().join("vm/out");
    let guest = Guest {
        kernel: Kernel::Linux6_12,
        image: Image::Test,
        machine: Machine { icount: true, cpus: 1, append: QUIET.into(), ..Machine::default() },
        files,
        environment: vec![
            (IN_GUEST.to_owned(), "/kettle".to_owned()),
            ("CARGO_TARGET_DIR".to_owned(), "/tmp/target".to_owned()),
        ],
        command: vec!["sh".to_owned(), "-c".to_owned(), script],
        out: out.clone(),
        limit: LIMIT,
    };
    guest.run(&Cache::open()?, &mut stdout(), &mut |_| {})?.into_result()?;
    let path = out.join("outage.json");
    let text = files::read(&path)?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Nothing of the kernel's own looks each half second whether clocks and processors are well.
const QUIET: &str = "tsc=reliable nowatchdog";

const SCRIPT: &str = "mkdir /tmp/target && ln -s /kettle /tmp/target/go && \
    exec /kettle/xtask measure outage --days --output /out/outage.json";

/// Idle days take minutes.
const LIMIT: Duration = Duration::from_hours(3);
