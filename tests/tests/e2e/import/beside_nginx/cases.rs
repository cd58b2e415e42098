//! Configurations as people write them, each with files, servers behind it and requests: nginx and, by the import, kettle are
//! asked the same, and what they answer and ask is compared. A case that is known to differ says how, and why.
//!
//! `KETTLE_BLESS=1` writes the differences anew. Reasons are written by hand.

mod answer;
mod behind;
mod compare;
mod format;

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use answer::{Answer, Kept};
use behind::{Asked, Behind};
use compare::{differences, shown};
use format::{Ask, Case};
use kettle_tests::prelude::*;
use kettle_tests::setup::unused_ip;

use super::super::*;
use super::NGINX_PROGRAM;

/// A test for each file of cases.
macro_rules! files {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            all_of(stringify!($name), include_str!(concat!("cases/", stringify!($name), ".txt")));
        })*
    };
}

files! {
    accesses
    applications
    bodies
    errors
    headers
    locations
    maps
    missing
    names
    paths
    proxies
    redirects
    signon
    static_files
    transfers
}

/// The sight of a request on one side.
struct Seen {
    answer: Answer,
    asked: Vec<Asked>,
}

/// Tries all cases of a file, and names each request whose outcome is another than the file says.
fn all_of(name: &str, text: &str) {
    if !Path::new(NGINX_PROGRAM).exists() {
        return skip("nginx is not installed");
    }
    let mut outcomes = Vec::new();
    let mut faults = String::new();
    for case in format::parse(text) {
        let trial = Trial::new(&case);
        let before = faults.len();
        let mut has_reason = false;
        for (ask, [nginx, kettle]) in trial.ask_all() {
            let new = outcome(&ask, &nginx, &kettle, has_reason);
            has_reason |= new.reason.is_some();
            let is_unexplained = new.reason.as_deref() == Some(UNKNOWN);
            if is_unexplained || new.status != ask.status || new.known() != ask.known() {
                faults += &fault(name, &case, &ask, &new, &nginx, &kettle);
            }
            outcomes.push(new);
        }
        if faults.len() > before {
            faults += &trial.remarks;
        }
    }
    if faults.is_empty() {
        return;
    }
    if std::env::var_os("KETTLE_BLESS").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
        fs::write(folder.join(format!("{name}.txt")), format::blessed(text, &outcomes)).unwrap();
    }
    panic!("{faults}");
}

/// The request with what came of it. A reason holds for the requests behind it in the same case, too.
fn outcome(ask: &Ask, nginx: &Seen, kettle: &Seen, has_reason: bool) -> Ask {
    let differences = differences(ask, nginx, kettle);
    let mut reason = ask.reason.clone().filter(|_| !differences.is_empty());
    if reason.is_none() && !differences.is_empty() && !has_reason {
        reason = Some(UNKNOWN.to_owned());
    }
    Ask { status: nginx.answer.status.clone(), differences, reason, ..ask.clone() }
}

fn fault(name: &str, case: &Case, said: &Ask, found: &Ask, nginx: &Seen, kettle: &Seen) -> String {
    let side = |seen: &Seen| {
        let Answer { status, headers, .. } = &seen.answer;
        let headers: String =
            headers.iter().map(|(name, value)| format!("\n    {name}: {value}")).collect();
        let asked: String = seen
            .asked
            .iter()
            .map(|it| format!("\n    asked {} {} {:?}", it.method, it.target, it.headers))
            .collect();
        format!("{status}{headers}{asked}\n    {}", shown(&seen.answer.text()))
    };
    let known = |ask: &Ask| format!("{} {}\n{}", ask.url(), ask.status, ask.known().join("\n"));
    format!(
        "\n{name}.txt: {}\nthe file says: {}\nit is: {}\n  nginx: {}\n  kettle: {}\n",
        case.title,
        known(said),
        known(found),
        side(nginx),
        side(kettle)
    )
}

/// Both programs with a case.
struct Trial<'a> {
    case: &'a Case,
    behind: Behind,
    /// Each port of the configuration, and the one in its place.
    ports: Vec<(u16, u16)>,
    place: TempDir,
    _running: [Running; 2],
    /// The words of the import on what it left out.
    remarks: String,
}

impl<'a> Trial<'a> {
    fn new(case: &'a Case) -> Self {
        let place = TempDir::new().unwrap();
        let behind = Behind::listen(&case.backends);
        let ports: Vec<(u16, u16)> = listened(&case.config)
            .into_iter()
            .map(|port| (port, unused_address().port()))
            .collect();
        lay_out(case, place.path(), &behind.ports);
        let config = |side: Side| {
            let text = rendered(&case.config, place.path(), &behind.ports);
            let text = with_addresses(&text, side.ip(), &ports);
            let text = format!("PROCESS\nhttp {{ access_log off; TEMPORARY\n{text}}}\n");
            let text = SAID.iter().fold(text, |text, (word, said)| text.replace(word, said));
            let path = place.path().join("nginx/nginx.conf");
            let folder = place.path().display().to_string();
            fs::write(&path, text.replace("FOLDER", &folder)).unwrap();
            path
        };
        let wait = |running: &Running, side: Side| {
            for (_, port) in &ports {
                wait_until(&case.title, || {
                    let said = running.stderr.text();
                    assert!(!said.contains("[emerg]"), "{}: {said}", case.title);
                    TcpStream::connect((side.ip(), *port)).is_ok()
                });
            }
        };
        let nginx = config(Side::Nginx);
        let words = ["-e".as_ref(), "stderr".as_ref(), "-c".as_ref(), nginx.as_os_str()];
        let nginx = Tool::new(NGINX_PROGRAM).args(words).start();
        wait(&nginx, Side::Nginx);
        let from = config(Side::Kettle);
        let made = Tool::kettle(["import".as_ref(), "nginx".as_ref(), from.as_os_str()]).output();
        assert!(made.status.success(), "{}: {}\n{}", case.title, made.stderr, made.text());
        let toml = place.path().join("kettle.toml");
        let socket = place.path().join("admin.sock").display().to_string();
        let text = made.text().replace("/run/kettle/admin.sock", &socket);
        let remarks = text.lines().take_while(|line| line.starts_with('#'));
        let remarks: String = remarks.map(|line| format!("  {line}\n")).collect();
        fs::write(&toml, &text).unwrap();
        let kettle = Tool::kettle(["run".as_ref(), toml.as_os_str()]).start();
        wait(&kettle, Side::Kettle);
        Self { case, behind, ports, place, _running: [nginx, kettle], remarks }
    }

    /// Each request with what is seen of it on both sides.
    fn ask_all(&self) -> Vec<(Ask, [Seen; 2])> {
        let mut kept = [None, None];
        let asked = self.case.asked.iter();
        asked
            .map(|ask| {
                let [nginx, kettle] = &mut kept;
                let nginx = self.ask(ask, Side::Nginx, nginx);
                let kettle = self.ask(ask, Side::Kettle, kettle);
                (ask.clone(), [nginx, kettle])
            })
            .collect()
    }

    fn ask(&self, ask: &Ask, side: Side, kept: &mut Kept) -> Seen {
        let port = self.ports.iter().find(|(port, _)| *port == ask.port);
        let (_, port) = port.unwrap_or_else(|| panic!("nobody listens: {}", ask.url()));
        let mut answer = answer::ask(ask, SocketAddr::new(side.ip(), *port), kept);
        for (_, value) in &mut answer.headers {
            *value = self.unrendered(value);
        }
        let mut asked = self.behind.take();
        for (_, value) in asked.iter_mut().flat_map(|it| &mut it.headers) {
            *value = self.unrendered(value);
        }
        Seen { answer, asked }
    }

    /// A text with the ports and the folder of the configuration. The usual ports of schemes are left out.
    fn unrendered(&self, text: &str) -> String {
        let mut text = text.replace(&format!("{}/", self.place.path().display()), "/srv/");
        for (port, real) in self.ports.iter().chain(&self.behind.ports) {
            text = match port {
                80 | 443 => text.replace(&format!(":{real}"), ""),
                _ => text.replace(&real.to_string(), &port.to_string()),
            };
        }
        text
    }
}

#[derive(Clone, Copy)]
enum Side {
    Nginx,
    Kettle,
}

impl Side {
    /// An address of its own, so that both have the same ports.
    fn ip(self) -> IpAddr {
        match (self, unused_ip()) {
            (Self::Nginx, IpAddr::V4(ip)) => {
                let [first, second, third, last] = ip.octets();
                IpAddr::from([first, second | 0xc0, third, last])
            }
            (_, ip) => ip,
        }
    }
}

/// The files of a case, and a certificate for all names that are asked for.
fn lay_out(case: &Case, place: &Path, ports: &[(u16, u16)]) {
    let mut names: Vec<&str> = vec!["localhost"];
    let asked = case.asked.iter().flat_map(|ask| [Some(ask.host.as_str()), ask.option("sni")]);
    names.extend(asked.flatten().filter(|name| name.contains(char::is_alphabetic)));
    names.sort_unstable();
    names.dedup();
    let issued = issue(&names, Kind::Ecdsa);
    let write = |name: &str, content: &[u8]| {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::File::open(path).unwrap().set_modified(SystemTime::UNIX_EPOCH + MODIFIED).unwrap();
    };
    write("tls/site.pem", issued.chain.as_bytes());
    write("tls/site.key", issued.key.as_bytes());
    for folder in ["t", "www", "nginx"] {
        fs::create_dir_all(place.join(folder)).unwrap();
    }
    for file in &case.files {
        if let Some(folder) = file.path.strip_suffix('/') {
            fs::create_dir_all(place.join(folder)).unwrap();
            continue;
        }
        if let Some(link) = &file.link {
            let path = place.join(&file.path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(link, path).unwrap();
            continue;
        }
        match file.path.starts_with("nginx/") {
            true => {
                let text = String::from_utf8(file.content.clone()).unwrap();
                write(&file.path, rendered(&text, place, ports).as_bytes());
            }
            false => write(&file.path, &file.content),
        }
        if file.has_gzip {
            let packed = Tool::new("gzip").args(["-nc"]).input(file.content.clone()).output();
            write(&format!("{}.gz", file.path), &packed.stdout);
        }
    }
}

/// The ports behind `listen`.
fn listened(config: &str) -> Vec<u16> {
    let ports = config.split("listen ").skip(1).filter_map(|rest| {
        let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    });
    let mut ports: Vec<u16> = ports.collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// The configuration with the folder and the ports of backends in the places of theirs.
fn rendered(config: &str, place: &Path, ports: &[(u16, u16)]) -> String {
    let text = config.replace("/srv/", &format!("{}/", place.display()));
    ports.iter().fold(text, |text, (port, real)| text.replace(&port.to_string(), &real.to_string()))
}

/// The configuration with an address of this side behind each `listen`.
fn with_addresses(config: &str, ip: IpAddr, ports: &[(u16, u16)]) -> String {
    ports.iter().fold(config.to_owned(), |text, (port, real)| {
        [";", " "].iter().fold(text, |text, end| {
            text.replace(&format!("listen {port}{end}"), &format!("listen {ip}:{real}{end}"))
        })
    })
}

/// The reason that somebody has still to find.
const UNKNOWN: &str = "?";
/// Of all files: 14 November 2023.
const MODIFIED: Duration = Duration::from_secs(1_700_000_000);
const FOLDER: &str = "tests/e2e/import/beside_nginx/cases";
