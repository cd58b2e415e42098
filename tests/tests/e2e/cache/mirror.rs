//! The example of a package mirror, before a real server and behind a real apt: what one machine fetched another gets without
//! the archive.

use std::fs;
use std::path::Path;

use super::*;
use crate::tunnel::peers::Peer;

const EXAMPLE: &str = include_str!("../../../../packaging/examples/package-mirror.toml");

/// An archive of one package, whose answers are good for two minutes, as is the one that there are no signatures.
const ARCHIVE: &str = "
  server {
    listen ADDRESS;
    location /debian/dists/ { add_header Cache-Control max-age=120 always; return 404; }
    location = /debian/dists/stable/Release { add_header Cache-Control max-age=120; alias FOLDER/Release; }
    location = /debian/dists/stable/main/binary-amd64/Packages {
      add_header Cache-Control max-age=120; alias FOLDER/Packages;
    }
    location /debian/pool/ { alias FOLDER/; }
  }
";

/// An apt that reads and writes nothing of this machine's own.
const APT: &str = "
Dir \"FOLDER/\";
Dir::State::status \"FOLDER/status\";
APT::Architecture \"amd64\";
APT::Architectures { \"amd64\"; };
APT::Sandbox::User \"\";
Acquire::Languages \"none\";
Acquire::https::Proxy \"DIRECT\";
Acquire::https::CAInfo \"AUTHORITY\";
Acquire::https::Verify-Host \"false\";
";

fn part<'e>(from: &str, to: &str) -> &'e str {
    let text = EXAMPLE.split_once(from).unwrap().1;
    text.split_once(to).map_or(text, |(part, _)| part)
}

fn sha256(bytes: &[u8]) -> String {
    Tool::new("sha256sum").input(bytes).succeed()[..64].to_owned()
}

/// Updates the lists and downloads the package, as a machine that knows nothing yet.
fn download(kettle: &Kettle) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    for name in ["etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/apt/lists/partial"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    fs::create_dir_all(folder.path().join("var/cache/apt/archives/partial")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let authority = kettle.folder.path("authority.pem");
    write("status", "");
    write(
        "apt.conf",
        &APT.replace("FOLDER", path).replace("AUTHORITY", authority.to_str().unwrap()),
    );
    // It has no name to be found under: of the certificate, all but that is verified.
    let source = format!("deb [trusted=yes] https://{}/debian stable main\n", kettle.address());
    write("etc/apt/sources.list", &source);
    let command = "cd \"$0\" && apt-get update && apt-get download tiny";
    let apt = Tool::new("sh")
        .environment("APT_CONFIG", folder.path().join("apt.conf"))
        .args(["-c", command, path]);
    let _ = apt.succeed();
    fs::read(folder.path().join("tiny_1_all.deb")).unwrap()
}

#[test]
fn a_mirror_gives_a_second_machine_what_the_first_one_fetched() {
    if !Path::new("/usr/lib/apt/methods/https").exists() {
        return skip("no apt here");
    }
    let package =
        String::from_utf8(content(300_000).iter().map(|byte| byte & 0x7f).collect()).unwrap();
    let packages = format!(
        "Package: tiny\nVersion: 1\nArchitecture: all\nMaintainer: nobody <a@example.org>\n\
         Description: small\nFilename: pool/tiny_1_all.deb\nSize: {}\nSHA256: {}\n",
        package.len(),
        sha256(package.as_bytes())
    );
    let release = format!(
        "Suite: stable\nCodename: stable\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nArchitectures: amd64\n\
         Components: main\nSHA256:\n {} {} main/binary-amd64/Packages\n",
        sha256(packages.as_bytes()),
        packages.len()
    );
    let files = [("Release", release), ("Packages", packages), ("tiny_1_all.deb", package.clone())];
    let Some(archive) = Peer::nginx(ARCHIVE, &files) else { return };
    let folder = TempDir::new().unwrap();
    let store = part("[[cache]]", "[[listener]]")
        .replace("/var/cache/kettle", folder.path().to_str().unwrap());
    let backend =
        part("[[backend]]", "[[site]]").replace("deb.debian.org:80", &archive.address.to_string());
    let setup = Setup::default()
        .site("default = true")
        .more(&format!("[[site.route]]{}", part("[[site.route]]", "no end")))
        .more(&format!("[[cache]]{store}"))
        .more(&format!("[[backend]]{backend}"));
    let kettle = Kettle::start(setup);
    assert!(download(&kettle) == package.as_bytes(), "what came first is the package");
    drop(archive);
    assert!(download(&kettle) == package.as_bytes(), "what came then is the package");
    for target in
        ["dists/stable/Release", "dists/stable/main/binary-amd64/Packages", "pool/tiny_1_all.deb"]
    {
        let target = format!("/debian/{target}");
        let words = [(); 2].map(|()| kettle.entry(&target).text("cache").to_owned());
        assert_eq!(words, ["miss", "hit"], "{target}");
    }
}
