//! Packages for Debian and its relatives, made by `dpkg-deb`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::release::Release;
use super::stage::{Part, copy, readable, set_mode};
use crate::files::{self, create_folder};
use crate::{checkout, process};

pub fn make(release: &Release) -> Result<Vec<PathBuf>, String> {
    [Part::Kettle, Part::Bench].into_iter().map(|part| make_one(release, part)).collect()
}

fn make_one(release: &Release, part: Part) -> Result<PathBuf, String> {
    let name = part.name();
    let tree = part.stage(release, "deb", "usr/share/zsh/vendor-completions")?;
    let doc = tree.join("usr/share/doc").join(name);
    let source = checkout::workspace().join("packaging/deb");
    copy(&source.join("copyright"), &doc.join("copyright"))?;
    write_changelog(release, name, &doc.join("changelog.Debian"))?;
    let control = tree.join("DEBIAN");
    create_folder(&control)?;
    let program = tree.join("usr/bin").join(name);
    files::write(control.join("control"), control_text(release, part, &glibc(&program)?))?;
    if part == Part::Kettle {
        files::write(control.join("conffiles"), CONFFILES)?;
    }
    let sums =
        "find . -path ./DEBIAN -prune -o -type f -printf '%P\\n' | LC_ALL=C sort | xargs md5sum";
    let sums = process::read(Command::new("sh").args(["-c", sums]).current_dir(&tree))?;
    files::write(control.join("md5sums"), &sums)?;
    readable(&tree)?;
    if part == Part::Kettle {
        for script in ["postinst", "prerm", "postrm"] {
            copy(&source.join(script), &control.join(script))?;
            set_mode(&control.join(script), 0o755)?;
        }
    }
    let version = &release.version;
    let architecture = release.architecture.debian();
    let package = release.output.join(format!("{name}_{version}-1_{architecture}.deb"));
    let mut dpkg = release.command("dpkg-deb");
    dpkg.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]);
    process::run_quietly(dpkg.arg(&tree).arg(&package))?;
    Ok(package)
}

fn write_changelog(release: &Release, name: &str, file: &Path) -> Result<(), String> {
    let date = ["--utc", "--rfc-email", &format!("--date=@{}", release.epoch)];
    let date = process::read(release.command("date").args(date))?;
    let text = format!(
        "{name} ({}-1) unstable; urgency=medium\n\n  * Made by `cargo xtask package deb`; what is new: changelog.gz.\n\n \
         -- {MAINTAINER}  {}\n",
        release.version,
        date.trim()
    );
    files::write(file, &text)?;
    process::run_quietly(Command::new("gzip").args(["-9", "-n"]).arg(file))
}

fn control_text(release: &Release, part: Part, glibc: &str) -> String {
    let version = &release.version;
    let (depends, more) = match part {
        Part::Kettle => (
            "systemd | systemd-standalone-sysusers | systemd-sysusers".to_owned(),
            "Recommends: ca-certificates\nSuggests: kettle-bench, prometheus\n",
        ),
        Part::Bench => (
            format!("kettle (= {version}-1)"),
            "Suggests: nginx, libnginx-mod-stream, haproxy, hitch, stunnel4\n",
        ),
    };
    let description = match part {
        Part::Kettle => DESCRIPTION,
        Part::Bench => BENCH_DESCRIPTION,
    };
    format!(
        "Package: {}\nVersion: {version}-1\nArchitecture: {}\nMaintainer: {MAINTAINER}\nSection: httpd\nPriority: optional\n\
         Homepage: {HOMEPAGE}\nDepends: libc6 (>= {glibc}), libgcc-s1, {depends}\n{more}Description: {description}",
        part.name(),
        release.architecture.debian()
    )
}

/// The oldest C library that has all the program asks for.
pub fn glibc(program: &Path) -> Result<String, String> {
    let symbols = process::read(Command::new("objdump").arg("-T").arg(program))?;
    newest_glibc(&symbols).ok_or_else(|| format!("{} asks for no glibc", program.display()))
}

fn newest_glibc(symbols: &str) -> Option<String> {
    let numbers = |version: &str| {
        let parts = version.split('.').map(|part| part.parse::<u32>().ok());
        parts.collect::<Option<Vec<u32>>>()
    };
    symbols
        .split("GLIBC_")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| c != '.' && !c.is_ascii_digit()).next())
        .filter_map(|version| Some((numbers(version)?, version)))
        .max()
        .map(|(_, version)| version.to_owned())
}

const MAINTAINER: &str = "The kettle contributors <kettle@packages.invalid>";
const HOMEPAGE: &str = env!("CARGO_PKG_REPOSITORY");
/// The files that an upgrade leaves as they were edited.
const CONFFILES: &str = "/etc/kettle/kettle.toml\n/etc/logrotate.d/kettle\n";
const DESCRIPTION: &str = "\
HTTPS server that encrypts where it costs least
 kettle serves files and carries connections to other servers over HTTPS.
 It lets the kernel seal TLS records where that is cheaper, and says which
 way each response took and why.
";
const BENCH_DESCRIPTION: &str = "\
measures kettle and other TLS servers on this machine
 Compares kettle with nginx, HAProxy, hitch and stunnel, puts loads on a
 server, and measures where kernel TLS is cheaper.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_is_the_one_needed() {
        let symbols = "x (GLIBC_2.9) y\nx (GLIBC_2.34)  z\n GLIBC_2.2.5 a\n GLIBC_PRIVATE b\n";
        assert_eq!(newest_glibc(symbols).as_deref(), Some("2.34"));
        assert_eq!(newest_glibc("nothing"), None);
    }

    /// Both make systemd answer ENOSYS to it, in the second case unsaid.
    #[test]
    fn the_unit_allows_openat2() {
        let unit = crate::checkout::workspace().join("packaging/kettle.service");
        let unit = files::read(unit).unwrap();
        let is_fatal = |line: &&str| {
            ["RestrictSUIDSGID=", "DynamicUser="].iter().any(|it| line.starts_with(it))
        };
        assert_eq!(unit.lines().find(is_fatal), None);
    }

    /// By the unit, and for a start without it; a purge takes them away.
    #[test]
    fn what_kettle_writes_to_is_made_and_removed() {
        let packaging = crate::checkout::workspace().join("packaging");
        let of = |file: &str| files::read(packaging.join(file)).unwrap();
        let unit = of("kettle.service");
        let made = of("tmpfiles.d/kettle.conf");
        let purge = of("deb/postrm");
        for (kind, folder) in [
            ("Cache", "/var/cache/kettle"),
            ("Logs", "/var/log/kettle"),
            ("Runtime", "/run/kettle"),
            ("State", "/var/lib/kettle"),
        ] {
            assert!(unit.contains(&format!("\n{kind}Directory=kettle\n")), "{folder}");
            assert!(made.contains(&format!("\nd {folder} ")), "{folder}");
            assert!(purge.contains(folder), "{folder}");
        }
    }
}
