//! PostgreSQL on both sides: psql through us, and its server behind TLS that we begin.

use std::os::unix::fs::chown;
use std::path::PathBuf;

use kettle_tests::certificate::authority_pem;
use kettle_tests::tool::Running;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use super::*;

/// A server with an empty database, and a certificate of its own. It answers with and without TLS.
struct Database {
    process: Running,
    folder: TempDir,
    address: SocketAddr,
}

impl Database {
    fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            skip("PostgreSQL is not installed");
            return None;
        };
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data");
        let address = unused_address();
        let as_owner = Owner::of(folder.path());
        let words = ["--no-sync", "--auth=trust", "--username=kettle", "--locale=C", "--pgdata"];
        let _ = as_owner.run(programs.join("initdb")).args(words).args([&data]).succeed();
        let issued = issue(&["localhost"], Kind::Ecdsa);
        for (name, text) in [
            ("server.crt", issued.chain.as_str()),
            ("server.key", &issued.key),
            ("pg_hba.conf", "host all all 127.0.0.0/8 trust\n"),
        ] {
            as_owner.write(&data.join(name), text);
        }
        fs::write(folder.path().join("authority.pem"), authority_pem()).unwrap();
        let settings = [
            format!("listen_addresses={}", address.ip()),
            format!("port={}", address.port()),
            "unix_socket_directories=".into(),
            "fsync=off".into(),
            "ssl=on".into(),
        ];
        let postgres = as_owner.run(programs.join("postgres")).args(["-D"]).args([&data]);
        let process = settings.iter().fold(postgres, |tool, it| tool.args(["-c", it])).start();
        process.stderr.wait_for("ready to accept connections");
        Some(Self { process, folder, address })
    }

    /// The answer that psql gets when it connects to `to` in this way.
    fn ask(&self, to: SocketAddr, way: &str, query: &str) -> String {
        let target = format!(
            "host=localhost hostaddr={} port={} user=kettle dbname=postgres sslrootcert={} {way}",
            to.ip(),
            to.port(),
            self.folder.path().join("authority.pem").display()
        );
        let words = ["--no-psqlrc", "--tuples-only", "--no-align", "--command", query, &target];
        Tool::new("psql").args(words).succeed().trim().to_owned()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // It ends at once, and takes its shared memory with it.
        let process = i32::try_from(self.process.process()).ok().and_then(Pid::from_raw);
        let is_told = process.is_some_and(|process| kill_process(process, Signal::QUIT).is_ok());
        if is_told && !std::thread::panicking() {
            let _ = self.process.ended();
        }
    }
}

/// The user who owns the files and runs the server, which refuses to be run by root.
struct Owner(Option<(u32, u32)>);

impl Owner {
    fn of(folder: &Path) -> Self {
        if !geteuid().is_root() {
            return Self(None);
        }
        // Debian's package makes this user.
        let users = fs::read_to_string("/etc/passwd").unwrap();
        let line = users.lines().find_map(|line| line.strip_prefix("postgres:x:")).unwrap();
        let mut numbers = line.split(':').map(|number| number.parse().unwrap());
        let ids = (numbers.next().unwrap(), numbers.next().unwrap());
        let owner = Self(Some(ids));
        owner.give(folder);
        owner
    }

    fn give(&self, path: &Path) {
        if let Some((user, group)) = self.0 {
            chown(path, Some(user), Some(group)).unwrap();
        }
    }

    fn write(&self, path: &Path, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        self.give(path);
    }

    fn run(&self, program: PathBuf) -> Tool {
        match self.0 {
            Some((user, group)) => Tool::new("setpriv")
                .args([format!("--reuid={user}"), format!("--regid={group}")])
                .args(["--clear-groups"])
                .args([program]),
            None => Tool::new(program),
        }
    }
}

/// Where the newest one is that Debian has installed.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.flatten().map(|version| version.path().join("bin"));
    folders.filter(|folder| folder.join("initdb").is_file()).max()
}

/// True if psql can begin TLS without asking for it in PostgreSQL's own words: 17 or newer.
fn speaks_direct_tls() -> bool {
    let said = Tool::new("psql").args(["--version"]).succeed();
    let version = said.split_whitespace().find_map(|word| word.split('.').next()?.parse().ok());
    version.is_some_and(|version: u32| version >= 17)
}

/// A query whose answer is true if the server sees TLS on this connection.
const IS_TLS: &str = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";

/// More than the crossover.
const LONG: &str = "select repeat('kettle', 200000)";

#[test]
fn psql_speaks_tls_to_us() {
    let Some(database) = Database::start() else { return };
    let kettle = Kettle::start(before("tls", "starttls = \"postgres\"\n", &[database.address]));
    let address = kettle.address();
    let mut ways = vec!["sslmode=verify-full"];
    if speaks_direct_tls() {
        ways.push("sslmode=verify-full sslnegotiation=direct");
    }
    for way in ways {
        assert_eq!(database.ask(address, way, IS_TLS), "f", "{way}: TLS ends here");
        assert_eq!(database.ask(address, way, LONG), "kettle".repeat(200_000), "{way}");
        for _ in 0..2 {
            assert_eq!(kettle.tunnel().text("tls_version"), "TLSv1.3", "{way}");
        }
    }
}

#[test]
fn we_speak_tls_to_postgresql() {
    let Some(database) = Database::start() else { return };
    let kettle = originating("starttls = \"postgres\"", database.address);
    let address = kettle.address();
    assert_eq!(database.ask(address, "sslmode=disable", IS_TLS), "t");
    assert_eq!(database.ask(address, "sslmode=disable", LONG), "kettle".repeat(200_000));
    assert_eq!(kettle.tunnel().text("server_tls_version"), "TLSv1.3");
}
