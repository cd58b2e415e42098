//! Debian's unit of hitch with nothing changed but its program, by Debian's own words for its configuration. The acts of
//! systemd are done by hand: a file system of its own, a signal for a reload, and one for every process at the end.

use super::*;

#[test]
fn debians_unit_starts_kettle_with_only_its_program_changed() {
    let Some(unit) = Unit::of_debian() else {
        return skip("Debian's package hitch is not installed");
    };
    if !geteuid().is_root() {
        return skip("systemd starts it as root");
    }
    // The rest is done as by systemd for this type, which has no file with a number.
    assert_eq!((unit.setting("Type"), unit.setting("PIDFile")), (Some("simple"), None));
    assert_eq!(unit.setting("KillMode").unwrap_or("control-group"), "control-group");
    let place = Place::new();
    let front = free();
    fs::write(place.path("hitch.conf"), config(front, Backend::echoing())).unwrap();
    write_key(&place, "before");
    let mut hitch = unit.start(&place);
    wait_until_listening(front);
    carry(front, "before");
    write_key(&place, "after");
    let number = hitch.process().to_string();
    let reload = unit.setting("ExecReload").unwrap().replace("$MAINPID", &number);
    let mut words = reload.split(' ');
    Tool::new(words.next().unwrap()).args(words).run();
    wait_until("the new certificate is shown", || shows(front, "after"));
    carry(front, "after");
    // Of a group of processes each gets the signal; the one that stays root is asked for nothing.
    let own = [vec![hitch.process()], children(hitch.process())].concat();
    for process in own.iter().map(|number| Pid::from_raw(i32::try_from(*number).unwrap())) {
        kill_process(process.unwrap(), Signal::TERM).unwrap();
    }
    let ended = hitch.ended();
    assert!(ended.status.success(), "{}: {}", ended.status, ended.stderr);
    assert!(ended.text().is_empty() && !ended.stderr.contains("ERROR"), "{}", ended.stderr);
    for process in own {
        wait_until("nothing is left", || !Path::new(&format!("/proc/{process}")).exists());
    }
}

/// The lines of Debian's unit.
struct Unit(String);

impl Unit {
    fn of_debian() -> Option<Self> {
        let folders = ["/usr/lib/systemd/system", "/lib/systemd/system"];
        let mut texts = folders.iter().map(|it| fs::read_to_string(format!("{it}/hitch.service")));
        Some(Self(texts.find_map(Result::ok)?)).filter(|_| Path::new(README).exists())
    }

    fn setting(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines().filter_map(|line| line.split_once('='));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Runs its command, with a folder in the place of hitch's own, and with what is not to be written made so.
    fn start(&self, place: &Place) -> Running {
        assert_eq!(self.setting("ProtectSystem"), Some("full"));
        let (program, words) = self.setting("ExecStart").unwrap().split_once(' ').unwrap();
        assert!(program.ends_with("/hitch"), "{program}");
        let script = format!(
            "mount --bind \"$1\" /etc/hitch; \
             for folder in /usr /etc; do mount --bind $folder $folder; mount -o remount,bind,ro $folder; done; \
             mount --bind \"$1\" /etc/hitch; exec \"$2\" hitch {words}"
        );
        let alone = ["--mount", "--propagation", "private", "sh", "-euc", &script, "sh"];
        Tool::new("unshare").args(alone).args([place.path(""), kettle_program()]).start()
    }
}

/// The lines that Debian tells people to write into the file, with addresses and a certificate that are there.
fn config(front: SocketAddr, backend: SocketAddr) -> String {
    let text = fs::read_to_string(README).unwrap();
    let names = ["frontend", "backend", "pem-file"];
    let is_setting = |line: &&str| names.iter().any(|name| line.starts_with(&format!("{name} =")));
    let lines: Vec<&str> = text.lines().filter(is_setting).collect();
    assert_eq!(lines.len(), names.len(), "{lines:?}");
    let text = lines.join("\n") + "\n";
    assert!(text.contains("[*]:443") && text.contains("[127.0.0.1]:8080") && text.contains(PEM));
    text.replace("[*]:443", &bracketed(front)).replace("[127.0.0.1]:8080", &bracketed(backend))
}

/// A certificate that only root may read.
fn write_key(place: &Place, name: &str) {
    let file = Path::new(PEM).file_name().unwrap().to_str().unwrap();
    place.pem(file, name);
    fs::set_permissions(place.path(file), fs::Permissions::from_mode(0o600)).unwrap();
}

/// Sends something through, and gets it back.
fn carry(front: SocketAddr, name: &str) {
    let mut client = Dialer::default().server_name(name).connect(front);
    client.send(b"ping").unwrap();
    let mut answer = [0; 4];
    client.receive(&mut answer).unwrap();
    assert_eq!(&answer, b"ping");
}

fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = fs::read_to_string(path).unwrap();
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

const README: &str = "/usr/share/doc/hitch/README.Debian";
const PEM: &str = "/etc/hitch/example.org.pem";
