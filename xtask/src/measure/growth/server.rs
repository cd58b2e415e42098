//! The servers that are measured and the origin behind their stores: their configurations, a start, an end, and what the kernel says they cost.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::configs::ConfigInput;
use super::{Kind, behind};
use crate::files::{self, create_folder};
use crate::measure::daemon::{Daemon, ending_with_us};
use crate::process;

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

    pub fn subject(self) -> &'static str {
        match self {
            Self::Kettle => "kettle user",
            Self::Nginx => "nginx user",
        }
    }
}

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
        let folder = folder.display().to_string();
        let site = self.place("site");
        let folder = folder.as_str();
        let site = site.as_str();
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
        let site = self.place("site");
        let certificates = self.place("certificates");
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
        let mut before = String::new();
        let mut within = String::new();
        let mut after = String::new();
        let site = self.place("site");
        let certificates = self.place("certificates");
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

pub struct ServerPrograms {
    pub kettle: PathBuf,
    /// nginx in a folder with its libraries.
    pub nginx: PathBuf,
}

impl ServerPrograms {
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
    pub folder: PathBuf,
    pub daemon: Daemon,
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
        files::write(folder.join(CONFIG), config(port))?;
        let daemon = Daemon::start(&mut command, &folder.join("log"), ("127.0.0.1", port))?;
        Ok(Self { port, folder: folder.to_owned(), daemon })
    }

    /// Has it read its configuration anew.
    pub fn reload(&self, config: &str) -> Result<(), String> {
        files::write(self.folder.join(CONFIG), config)?;
        self.daemon.signal("HUP")
    }
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
