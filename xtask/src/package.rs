//! `cargo xtask package`: what people install. Each package is made from the same two programs and the same staged files, without a network,
//! and its bytes depend on these alone.

mod architecture;
mod check;
mod deb;
mod oci;
mod release;
mod reproduce;
mod rpm;
mod sbom;
mod stage;
mod systemd;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::{checkout, packages};
use architecture::Architecture;
use release::Release;

pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if arguments.iter().any(|word| matches!(word.as_str(), "--help" | "-h")) {
        print!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let choice = Choice::parse(arguments)?;
    let architecture = Architecture::of_this_machine(choice.architecture)?;
    packages::ensure_all(TOOLS)?;
    if choice.what == What::Reproduce {
        return reproduce::run(architecture, &choice.profile, choice.programs)
            .map(|()| ExitCode::SUCCESS);
    }
    let is_tried = matches!(choice.what, What::Test | What::Systemd);
    if is_tried {
        packages::ensure_all(TEST_TOOLS)?;
    }
    let programs = match choice.programs {
        Some(folder) => folder,
        None => release::build(&choice.profile)?,
    };
    let release = Release::new(architecture, programs, choice.output)?;
    let made = match choice.what {
        What::Deb => deb::make(&release)?,
        What::Rpm => rpm::make(&release)?,
        What::Oci => vec![oci::make(&release)?],
        What::Sbom => vec![sbom::make(&release)?],
        What::All => all(&release)?,
        What::Test => check::run(&release).map(|()| Vec::new())?,
        What::Systemd => systemd::run(&release).map(|()| Vec::new())?,
        What::Reproduce => Vec::new(),
    };
    for file in made {
        println!("{}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn all(release: &Release) -> Result<Vec<PathBuf>, String> {
    let mut made = deb::make(release)?;
    made.extend(rpm::make(release)?);
    made.extend([oci::make(release)?, sbom::make(release)?]);
    Ok(made)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Deb,
    Rpm,
    Oci,
    Sbom,
    All,
    Test,
    Systemd,
    Reproduce,
}

impl What {
    fn parse(word: &str) -> Result<Self, String> {
        Ok(match word {
            "deb" => Self::Deb,
            "rpm" => Self::Rpm,
            "oci" => Self::Oci,
            "sbom" => Self::Sbom,
            "all" => Self::All,
            "test" => Self::Test,
            "systemd" => Self::Systemd,
            "reproduce" => Self::Reproduce,
            other => return Err(format!("cannot make `{other}`\n{USAGE}")),
        })
    }
}

/// The packages to make, and their contents.
#[derive(Debug)]
struct Choice {
    what: What,
    architecture: Option<Architecture>,
    profile: String,
    programs: Option<PathBuf>,
    output: PathBuf,
}

impl Choice {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut words = arguments.iter().cloned();
        let mut choice = Self {
            what: What::parse(&words.next().ok_or(USAGE)?)?,
            architecture: None,
            profile: "release".to_owned(),
            programs: None,
            output: checkout::target_folder().join("packages"),
        };
        while let Some(word) = words.next() {
            match (word.as_str(), words.next()) {
                ("--arch", Some(word)) => choice.architecture = Some(Architecture::parse(&word)?),
                ("--profile", Some(profile)) => choice.profile = profile,
                ("--programs", Some(folder)) => choice.programs = Some(folder.into()),
                ("--output", Some(folder)) => choice.output = folder.into(),
                _ => return Err(format!("cannot make sense of `{word}`\n{USAGE}")),
            }
        }
        Ok(choice)
    }
}

/// The packages of tools to make them: `objdump` is in binutils, which comes with gcc.
const TOOLS: &[&str] = &["binutils", "ca-certificates", "rpm", "xz-utils"];

/// The packages of tools to try them.
const TEST_TOOLS: &[&str] =
    &["cpio", "curl", "e2fsprogs", "iproute2", "mmdebstrap", "openssl", "python3"];

const USAGE: &str = "\
cargo xtask package WHAT [--arch NAME] [--profile NAME | --programs DIR] [--output DIR]

  deb         kettle and kettle-bench for Debian and its relatives
  rpm         the same for Fedora, SUSE and theirs
  oci         kettle as a container image: an OCI layout in a tar
  sbom        what is in the programs, as CycloneDX 1.5
  all         these four
  test        makes them and tries each: install, serve, upgrade, remove (needs root)
  systemd     tries the Debian package under a real systemd: the unit as it runs (needs root)
  reproduce   builds the programs in two folders and everything else twice, and compares;
              with --programs only what is made of these

  --arch NAME       amd64 or arm64: refuses to go on where this machine is another
  --profile NAME    how the programs are built (release)
  --programs DIR    takes kettle and kettle-bench from there instead
  --output DIR      where packages are put (target/packages)
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Choice, String> {
        Choice::parse(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn an_architecture_is_named_as_debian_does() {
        let choice = parse(&["deb", "--arch", "arm64"]).unwrap();
        assert_eq!(choice.architecture, Some(Architecture::Arm64));
        assert!(parse(&["deb", "--arch", "riscv64"]).is_err_and(|it| it.contains("riscv64")));
    }

    /// Before anything is installed or built.
    #[test]
    fn unknown_words_are_refused_with_the_usage() {
        assert_eq!(parse(&["all", "--output", "/tmp/x"]).unwrap().what, What::All);
        for words in [&[][..], &["dep"], &["deb", "--quick"], &["deb", "--profile"]] {
            assert!(parse(words).is_err_and(|error| error.contains("cargo xtask package WHAT")));
        }
    }
}
