//! The servers that are measured and the origin behind their stores: their configurations, a start, an end, and what the kernel says they cost.

use std::fmt::Write;
use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use super::super::configs::{self, ConfigInput};
use super::{Kind, behind};
use crate::process;
use crate::vm::cache::{at, create_folder};

/// Which server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Kettle,
    Nginx,
}

impl Program {
    /// Both, the one whose turn it is first.
    pub fn in_turn(round: usize) -> [Self; 2] {
        if round.is_multiple_of(2) {
            [Self::Kettle, Self::Nginx]
        } else {
            [Self::Nginx, Self::Kettle]
        }
    }

    /// Returns its name in results.
    pub fn subject(self) -> &'static str {
        match self {
            Self::Kettle => "kettle user",
            Self::Nginx => "nginx user",
        }
    }
}

/// The setup of a server.
pub struct Setup<'s> {
    pub kind: Kind,
    pub number: u64,
    pub workers: u32,
    /// Holds the site, which has a folder for each answer of a reload, and the certificates.
    pub folder: &'s Path,
    /// Of the folders `a` and `b` of the site the one that the last of many sites has.
    pub last_site: &'s str,
    pub origin: u16,
    pub hot_memory: &'s str,
}

impl Setup<'_> {
    /// The configuration of a server with this folder and port.
    pub fn config(&self, program: Program, folder: &Path, port: u16) -> String {
        let (folder, site) = (folder.display().to_string(), self.place("site"));
        let (folder, site) = (folder.as_str(), site.as_str());
        let has_http2 = self.kind == Kind::Texts;
        let input = ConfigInput { folder, site, port, has_http2, is_confined: true };
        match program {
            Program::Kettle => self.kettle(&input),
            Program::Nginx => self.nginx(&input),
        }
    }

    fn kettle(&self, input: &ConfigInput<'_>) -> String {
        let text = match self.kind {
            Kind::Objects | Kind::Fill => input
                .cached("user", "64 KiB")
                .replace("127.0.0.1:8080", &format!("127.0.0.1:{}", self.origin))
                .replace("name = \"main\"", "name = \"main\"\nsize = \"200 GiB\""),
            _ => input.kettle("user", "64 KiB") + &behind::kettle(self.kind, self.origin),
        };
        let limits = format!("[limits]\nhot_memory = \"{}\"", self.hot_memory);
        let mut text = text
            .replace("workers = 1", &format!("workers = {}", self.workers))
            .replace("[limits]", &limits);
        let (site, certificates) = (self.place("site"), self.place("certificates"));
        for n in 0..self.number {
            let _ = match self.kind {
                Kind::Routes => {
                    writeln!(text, "[[site.route]]\nprefix = \"/r{n}\"\nroot = \"{site}\"")
                }
                Kind::Places => writeln!(
                    text,
                    "[[site.route]]\nexact = \"/r{n}\"\nroot = \"{site}\"\ntry = [\"/f0\"]"
                ),
                Kind::Expressions => writeln!(
                    text,
                    "[[site.route]]\nregex = '\\.x{n}$'\nrespond = {{ status = 403 }}"
                ),
                Kind::Redirects => {
                    writeln!(text, "[[site.route.redirect]]\nfrom = \"/old{n}\"\nto = \"/new{n}\"")
                }
                Kind::Sites => writeln!(
                    text,
                    "[[site]]\nnames = [\"s{n}.growth.test\"]\n[[site.certificate]]\nchain = \"{certificates}/s{n}.growth.test.pem\"\n\
                     key = \"{certificates}/s{n}.growth.test.key\"\n[[site.route]]\nroot = \"{site}/{}\"",
                    self.folder_of(n)
                ),
                _ => break,
            };
        }
        text
    }

    fn nginx(&self, input: &ConfigInput<'_>) -> String {
        let text = input
            .nginx(false, true)
            .replace("worker_processes 1", &format!("worker_processes {}", self.workers));
        let Some((head, server)) = text.split_once("    server {") else { return text };
        let server = format!("    server {{{}", server.trim_end().trim_end_matches('}'));
        let (mut before, mut within, mut after) = (String::new(), String::new(), String::new());
        let (site, certificates) = (self.place("site"), self.place("certificates"));
        let root = format!("root {site};");
        match self.kind {
            Kind::Objects | Kind::Fill => {
                let _ = writeln!(before, "{NGINX_STORE}server 127.0.0.1:{}; }}", self.origin);
                within.push_str(NGINX_CACHED);
            }
            Kind::Redirects => before.push_str(
                "map_hash_max_size 65536;\nmap_hash_bucket_size 128;\nmap $uri $moved {\n",
            ),
            Kind::Sites => before.push_str(
                "server_names_hash_max_size 65536;\nserver_names_hash_bucket_size 128;\n",
            ),
            kind => {
                let (outside, inside) = behind::nginx(kind, self.origin);
                before.push_str(&outside);
                within.push_str(&inside);
            }
        }
        for n in 0..self.number {
            let _ = match self.kind {
                Kind::Routes => writeln!(within, "location /r{n}/ {{ alias {site}/; }}"),
                Kind::Places => writeln!(within, "location = /r{n} {{ alias {site}/f0; }}"),
                Kind::Expressions => {
                    writeln!(within, "location ~ \\.x{n}$ {{ return 403; }}")
                }
                Kind::Redirects => writeln!(before, "/old{n} /new{n};"),
                Kind::Sites => {
                    let own = server
                        .replace(" backlog=4096", "")
                        .replace("server_name localhost", &format!("server_name s{n}.growth.test"))
                        .replace(
                            &format!("{}/certificate.pem", input.folder),
                            &format!("{certificates}/s{n}.growth.test.pem"),
                        )
                        .replace(
                            &format!("{}/key.pem", input.folder),
                            &format!("{certificates}/s{n}.growth.test.key"),
                        )
                        .replace(&root, &format!("root {site}/{};", self.folder_of(n)));
                    writeln!(after, "{own}")
                }
                _ => break,
            };
        }
        if self.kind == Kind::Redirects {
            before.push_str("}\n");
            within.push_str("if ($moved) { return 302 $moved; }\n");
        }
        let server = server.replace(&root, &format!("{root}\n{within}"));
        format!("{head}{before}{server}{after}}}\n")
    }

    fn place(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn folder_of(&self, site: u64) -> &str {
        if site + 1 == self.number { self.last_site } else { "a" }
    }
}

/// The configuration of a plain server that gives the file `body` under every name.
pub fn origin(folder: &Path, port: u16) -> String {
    format!(
        "worker_processes 1;\nworker_rlimit_nofile 8192;\ndaemon off;\nuser root;\npid nginx.pid;\nerror_log error.log warn;\n\
         events {{ worker_connections 4096; }}\nhttp {{\naccess_log off;\nkeepalive_requests 1000000000;\n\
         client_body_temp_path body_temp;\nproxy_temp_path proxy;\nfastcgi_temp_path fastcgi;\nuwsgi_temp_path uwsgi;\n\
         scgi_temp_path scgi;\nserver {{\nlisten 127.0.0.1:{port} backlog=4096;\nroot {};\n\
         types {{ }}\ndefault_type text/plain;\nlocation / {{ try_files /body =404; }}\n\
         location = /check {{ return 204; }}\nlocation = /status {{ stub_status; }}\n}}\n}}\n",
        folder.display()
    )
}

/// PHP-FPM on these processors, by the configuration in its folder.
pub fn php(cpus: &str, folder: &Path) -> Command {
    let mut command = ending_with_us();
    command.args([
        "taskset",
        "-c",
        cpus,
        "sh",
        "-c",
        "exec $(ls /usr/sbin/php-fpm* | tail -n 1) \"$@\"",
        "php-fpm",
    ]);
    command.args(["-F", "-R", "-y"]).arg(folder.join(CONFIG));
    command
}

/// The programs, as they are called.
pub struct ServerPrograms {
    pub kettle: PathBuf,
    /// nginx in a folder with its libraries.
    pub nginx: PathBuf,
}

impl ServerPrograms {
    /// Returns the version of nginx.
    pub fn nginx_version(&self) -> String {
        let mut command = self.nginx();
        let output = command.arg("-v").output();
        let said = output.map(|it| String::from_utf8_lossy(&it.stderr).into_owned());
        said.unwrap_or_default().trim().trim_start_matches("nginx version: ").to_owned()
    }

    /// nginx by its own dynamic linker.
    fn nginx(&self) -> Command {
        let libraries = self.nginx.join("usr-lib/x86_64-linux-gnu");
        let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(&libraries).arg(self.nginx.join("nginx"));
        command
    }

    /// Has a server run on these processors, by the configuration in its folder.
    pub fn command(&self, program: Program, cpus: &str, folder: &Path) -> Command {
        let mut command = ending_with_us();
        command.args(["taskset", "-c", cpus]);
        match program {
            Program::Kettle => {
                command.arg(&self.kettle).args(["run", "--config"]).arg(folder.join(CONFIG))
            }
            Program::Nginx => {
                let nginx = self.nginx();
                command.arg(nginx.get_program()).args(nginx.get_args());
                command.arg("-p").arg(folder).arg("-c").arg(folder.join(CONFIG));
                command.env("OPENSSL_CONF", self.nginx.join("ssl/openssl.cnf"))
            }
        };
        command
    }
}

/// A server that was started. It is ended when dropped.
pub struct RunningServer {
    pub port: u16,
    child: Child,
    pub folder: PathBuf,
}

impl RunningServer {
    /// Starts one in its folder, where the command finds [`CONFIG`], and waits until it can be connected to.
    pub fn start(
        mut command: Command,
        folder: &Path,
        config: impl FnOnce(u16) -> String,
    ) -> Result<Self, String> {
        create_folder(folder)?;
        let port = process::free_port()?;
        configs::write(&folder.join(CONFIG), &config(port))?;
        let log = folder.join("log");
        let output = File::create(&log).map_err(|error| at(&log, &error))?;
        let errors = output.try_clone().map_err(|error| at(&log, &error))?;
        let child = command.stdout(output).stderr(errors).spawn();
        let child = child.map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut server = Self { port, child, folder: folder.to_owned() };
        let deadline = Instant::now() + START_TIME_MAX;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let is_over = !matches!(server.child.try_wait(), Ok(None));
            if is_over || Instant::now() > deadline {
                let said = fs::read_to_string(&log).unwrap_or_default();
                let said: Vec<&str> = said.lines().take(5).collect();
                let folder = folder.display();
                return Err(format!("{folder}: it does not listen: {}", said.join(" / ")));
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        Ok(server)
    }

    /// Has it read its configuration anew.
    pub fn reload(&self, config: &str) -> Result<(), String> {
        configs::write(&self.folder.join(CONFIG), config)?;
        signal("HUP", &[self.child.id()])
    }

    /// Processor time of its processes, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        tree(self.child.id()).iter().filter_map(|pid| stat(*pid)).map(|it| it.ticks).sum::<f64>()
            * 1e6
            / TICKS_PER_SECOND
    }

    /// Memory of its processes in bytes, what they share counted once.
    pub fn memory_bytes(&self) -> f64 {
        memory_of(self.child.id(), "Pss:")
    }

    /// Descriptors its processes have open.
    pub fn descriptors(&self) -> usize {
        let count = |pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        tree(self.child.id()).into_iter().map(count).sum()
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let all = tree(self.child.id());
        let _ = signal("TERM", &[self.child.id()]);
        let deadline = Instant::now() + STOP_TIME_MAX;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = signal("KILL", &all);
            let _ = self.child.wait();
        }
    }
}

/// A command that ends with this process, however that ends; the program and its arguments follow.
pub fn ending_with_us() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]);
    command
}

/// Sends a signal to processes.
pub fn signal(name: &str, pids: &[u32]) -> Result<(), String> {
    let pids = pids.iter().map(u32::to_string);
    process::run_quietly(Command::new("kill").arg(format!("-{name}")).args(pids))
}

/// Memory in bytes of a process and those that come of it, by a line of smaps_rollup that counts what they share once (proc(5)).
pub fn memory_of(root: u32, kind: &str) -> f64 {
    let each = tree(root).into_iter().filter_map(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
        line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()
    });
    each.sum::<f64>() * 1024.0
}

struct Stat {
    parent: u32,
    ticks: f64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The parent of a process, and its processor time with that of the children it has waited for (proc(5)).
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Some(Stat { parent: fields.get(1)?.parse().ok()?, ticks })
}

/// A process and those that come of it.
pub fn tree(root: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, stat(pid)?.parent))).collect();
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        tree.extend(parents.iter().filter(|(_, its)| *its == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    tree
}

const NGINX_STORE: &str = "proxy_cache_path cache levels=1:2 keys_zone=main:256m max_size=200g inactive=1d use_temp_path=off;
upstream plain { keepalive 64; ";
const NGINX_CACHED: &str = "location / {
proxy_pass http://plain;
proxy_http_version 1.1;
proxy_set_header Connection \"\";
proxy_cache main;
proxy_cache_valid 200 1h;
proxy_cache_lock on;
proxy_cache_lock_timeout 1m;
proxy_cache_lock_age 1m;
}
";
/// The name of a configuration in its server's folder.
const CONFIG: &str = "config";
/// `getconf CLK_TCK`, which is 100 on every Linux of today.
const TICKS_PER_SECOND: f64 = 100.0;
const START_TIME_MAX: Duration = Duration::from_secs(180);
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    #[test]
    fn processor_time_is_that_of_children_too() {
        let text = "7 (a) b) S 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0";
        let stat = super::parse_stat(text).unwrap();
        assert_eq!((stat.parent, stat.ticks), (3, 100.0));
        assert!(super::parse_stat("").is_none());
    }
}
