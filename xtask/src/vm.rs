//! `cargo xtask vm`: guests with real kernels. Reads the command line; the work is in the modules below.

pub mod apt;
mod arguments;
pub mod busybox;
pub mod cache;
pub mod disk;
mod emulator;
pub mod guest;
pub mod image;
mod initramfs;
pub mod kernel;
pub mod modules;
pub mod qemu;

use std::process::ExitCode;

use arguments::Arguments;
use cache::Cache;
use guest::Guest;
use image::Image;
use kernel::Kernel;

pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(format!("which command?\n{USAGE}"));
    };
    let arguments = Arguments::parse(rest)?;
    match command.as_str() {
        "fetch" => fetch(&arguments),
        "image" => image(&arguments),
        "run" => run_guest(arguments),
        "shell" if arguments.command.is_empty() => start(&arguments.into_guest()?),
        _ => Err(format!("unknown command\n{USAGE}")),
    }
}

fn fetch(arguments: &Arguments) -> Result<ExitCode, String> {
    let cache = Cache::open()?;
    let kernels = match arguments.names.as_slice() {
        [] => Kernel::ALL.to_vec(),
        names => names.iter().map(|name| Kernel::parse(name)).collect::<Result<_, _>>()?,
    };
    for kernel in kernels {
        if arguments.refresh {
            kernel.forget(&cache)?;
        }
        let files = kernel.obtain(&cache)?;
        println!("{:5} {} ({})", kernel.name(), files.release, files.image.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn image(arguments: &Arguments) -> Result<ExitCode, String> {
    let cache = Cache::open()?;
    let images = match arguments.names.as_slice() {
        [] => Image::ALL.to_vec(),
        names => names.iter().map(|name| Image::parse(name)).collect::<Result<_, _>>()?,
    };
    for image in images {
        if arguments.refresh {
            image.forget(&cache)?;
        }
        println!("{:8} {}", image.name(), image.obtain(&cache)?.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn run_guest(arguments: Arguments) -> Result<ExitCode, String> {
    if arguments.command.is_empty() {
        return Err(format!("what shall the guest run? Give it after `--`.\n{USAGE}"));
    }
    start(&arguments.into_guest()?)
}

fn start(guest: &Guest) -> Result<ExitCode, String> {
    let report = guest.run(&Cache::open()?, &mut std::io::stdout(), &mut |_| {})?;
    eprintln!("vm: {:.1} s on Linux {}", report.took.as_secs_f64(), guest.kernel.name());
    for complaint in &report.complaints {
        eprintln!("vm: the kernel says {complaint}");
    }
    match (report.status, report.failure) {
        (Some(status), _) => Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX))),
        (None, failure) => Err(failure.unwrap_or_default()),
    }
}

const USAGE: &str = "\
cargo xtask vm fetch [--refresh] [6.1|6.12|7]...      download the kernels
cargo xtask vm image [--refresh] [test|measure]...    build the root file systems
cargo xtask vm run [OPTIONS] -- COMMAND...            run a command in a guest, with its exit status
cargo xtask vm shell [OPTIONS]                        a shell in a guest

  --kernel 6.1|6.12|7     the kernel (7)
  --image test|measure    the root file system (test)
  --file PATH             a file or folder to put into the guest's /kettle, under its own name; may be repeated
  --env NAME=VALUE        an environment variable for the command; may be repeated
  --out DIR               where the files go that the guest leaves in /out (target/vm/out)
  --timeout SECONDS       the guest is killed after this (600)
  --icount                count instructions: one CPU, one instruction is one nanosecond
  --no-erms               a CPU without fast string copies
  --cpus N, --memory MIB  the machine's size (2, 3072)
  --append WORDS          more words for the kernel's command line
";
