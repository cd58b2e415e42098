//! The wishes of the user, as the command line has them; everything left open is the scenario's to choose.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use kettle_command_line::parse_size;
use kettle_loadgen::offer::ResumeBy;
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use crate::number::{parse_count, parse_positive, parse_time};
use crate::peers::subject::{CertificateKey, OwnConfig, Program, Role, SubjectPath};
use crate::word::{Word, words};

/// The wishes of the user. `None` leaves it to the scenario.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is compared (lists with commas)")]
pub struct Options {
    /// The time that the answer is worth.
    #[arg(skip)]
    pub effort: Effort,
    /// Programs: kettle, nginx, haproxy, hitch, stunnel
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Program::from_word)]
    pub servers: Option<Vec<Program>>,
    /// The places where they encrypt: plain, user, kernel-write, kernel-sendfile, kernel-splice, auto
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = SubjectPath::from_word)]
    pub paths: Option<Vec<SubjectPath>>,
    /// The roles: files, terminator, cache, proxy
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Role::from_word)]
    pub roles: Option<Vec<Role>>,
    /// Sizes of bodies, such as 1k,64k,10M
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_size)]
    pub sizes: Option<Vec<u64>>,
    /// TLS version: 1.2 or 1.3
    #[arg(id = "tls", long = "tls", value_name = "VERSION", value_parser = Version::from_word)]
    pub version: Option<Version>,
    #[command(flatten)]
    pub http: Http,
    /// Suites: aes-128-gcm, aes-256-gcm, chacha20-poly1305
    #[arg(long = "suite", value_name = "LIST", value_delimiter = ',', value_parser = Cipher::from_word)]
    pub suites: Option<Vec<Cipher>>,
    /// Groups: x25519, p256, p384, x25519mlkem768
    #[arg(long = "group", value_name = "LIST", value_delimiter = ',', value_parser = Group::from_word)]
    pub groups: Option<Vec<Group>>,
    /// Keys of the certificate: p256, rsa2048, rsa3072, rsa4096, ed25519
    #[arg(long = "key", value_name = "LIST", value_delimiter = ',', value_parser = CertificateKey::from_word)]
    pub keys: Option<Vec<CertificateKey>>,
    /// Ways of resuming sessions: none, session-id, ticket, early-data
    #[arg(id = "resume_by", long = "resume-by", value_name = "LIST", value_delimiter = ',',
          value_parser = ResumeBy::from_word)]
    pub resume: Option<Vec<ResumeBy>>,
    /// Transactions with one TLS session, such as 1,4,8,80
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_count)]
    pub per_session: Option<Vec<u32>>,
    /// Connections open at the same time
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_count)]
    pub connections: Option<Vec<u32>>,
    /// Workers of each server
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub workers: Option<Vec<usize>>,
    /// Throughputs in Gb/s (streaming)
    #[arg(long = "throughput", value_name = "LIST", value_delimiter = ',', value_parser = parse_positive)]
    pub throughputs: Option<Vec<f64>>,
    /// The client in nginx-1g: own or curl
    #[arg(long, default_value = "own", value_name = "CLIENT", value_parser = DownloadClient::from_word)]
    pub client: DownloadClient,
    /// Rounds over all servers [default: by effort]
    #[arg(long, value_name = "NUMBER", value_parser = parse_count, help_heading = HOW)]
    pub rounds: Option<u32>,
    /// Length of one sample, without its warm-up, such as 2 or 500ms [default: by effort]
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = HOW)]
    pub seconds: Option<Duration>,
    /// CPUs for servers, such as 0,2 [default: chosen, apart from the client's]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = HOW)]
    pub server_cpus: Option<Vec<usize>>,
    /// CPUs for the client
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = HOW)]
    pub client_cpus: Option<Vec<usize>>,
    /// Your configuration in place of the generated one: your nginx.conf, which kettle is then run by, too, or a template
    /// made from `kettle bench config nginx`
    #[arg(long = "config", value_name = "PROGRAM=FILE", value_parser = own_config, help_heading = HOW)]
    pub configs: Vec<(Program, OwnConfig)>,
    /// The folder of the files to serve while measuring; they should fit into memory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = HOW)]
    pub directory: Option<PathBuf>,
    /// The operator's own nginx.conf, if nginx has one that is no template.
    #[arg(skip)]
    pub own_nginx: Option<OwnNginx>,
}

const HOW: &str = "How it is measured";

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Http {
    /// Version of HTTP: 1 or 2
    #[arg(long, default_value_t = 1, value_name = "VERSION", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub http: u8,
    /// Over HTTP/2: requests that are sent at once and count as one
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub at_once: u32,
}

impl Http {
    /// Refuses what would be left out without a word.
    ///
    /// # Errors
    /// A sentence for the command line: requests at once need HTTP/2.
    pub fn check(self) -> Result<(), String> {
        if self.at_once > 1 && self.http != 2 {
            return Err(format!("--at-once {} is for HTTP/2; add --http 2", self.at_once));
        }
        Ok(())
    }

    /// The number of requests at once over HTTP/2, if it is that.
    pub fn at_once(self) -> Option<u32> {
        (self.http == 2).then_some(self.at_once)
    }
}

/// `nginx=my.conf`.
fn own_config(text: &str) -> Result<(Program, OwnConfig), String> {
    let (program, file) =
        text.split_once('=').ok_or("write PROGRAM=FILE, such as nginx=my.conf")?;
    Ok((Program::from_word(program)?, OwnConfig::Template(file.into())))
}

/// An nginx.conf that both servers are measured by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnNginx {
    pub file: PathBuf,
    /// The place where nginx encrypts by it on this machine.
    pub path: SubjectPath,
}

words! {
    /// The time that an answer is worth.
    #[derive(Default)]
    pub enum Effort {
        /// A first look.
        Quick = "quick",
        /// Good enough to decide by.
        #[default]
        Normal = "normal",
        /// Good enough to publish.
        Thorough = "thorough",
    }
}

words! {
    /// The client that downloads.
    #[derive(Default)]
    pub enum DownloadClient {
        /// This program, which discards what it received.
        #[default]
        Own = "own",
        /// curl, which is what most people try it with.
        Curl = "curl",
    }
}

impl Effort {
    pub fn pick<T>(self, quick: T, normal: T, thorough: T) -> T {
        match self {
            Effort::Quick => quick,
            Effort::Normal => normal,
            Effort::Thorough => thorough,
        }
    }
}

impl Options {
    /// Rounds, as asked for or by effort.
    pub fn rounds_or(&self, [quick, normal, thorough]: [u32; 3]) -> u32 {
        self.rounds.unwrap_or(self.effort.pick(quick, normal, thorough)).max(1)
    }

    /// The length of one sample, as asked for or by effort, in seconds.
    pub fn seconds_or(&self, [quick, normal, thorough]: [u64; 3]) -> Duration {
        self.seconds.unwrap_or(Duration::from_secs(self.effort.pick(quick, normal, thorough)))
    }

    /// The size of bodies of a scenario that takes one.
    pub fn size_or(&self, usual: u64) -> u64 {
        first(&self.sizes).unwrap_or(usual)
    }

    /// The number of connections of a scenario that takes one.
    pub fn connections_or(&self, usual: u32) -> u32 {
        first(&self.connections).unwrap_or(usual)
    }

    /// The same with its files where they were for a run that began in this folder.
    pub fn of_run_in(mut self, folder: &Path) -> Self {
        for (_, OwnConfig::Template(file) | OwnConfig::OfNginx(file)) in &mut self.configs {
            *file = folder.join(&file);
        }
        self.directory = self.directory.map(|directory| folder.join(directory));
        self
    }

    /// The configuration in place of a program's generated one; of several, the last.
    pub fn config(&self, program: Program) -> Option<&OwnConfig> {
        self.configs.iter().rev().find(|(of, _)| *of == program).map(|(_, config)| config)
    }
}

/// The first of what the user named, if anything was named.
pub fn first<T: Copy>(named: &Option<Vec<T>>) -> Option<T> {
    named.as_ref()?.first().copied()
}
