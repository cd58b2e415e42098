//! Ways in which a certificate is asked about and shown, beside those of a site.

use kettle_tests::environment::kettle_program;
use kettle_tests::kettle::memory_of;
use kettle_tests::setup::Folder;

use super::*;

#[test]
fn a_listener_without_sites_gets_one_by_a_listener_that_redirects() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let tls = unused_address();
    let own = "kind = \"tls\"\nbackend = \"db\"\n[listener.acme]\nnames = [\"db.localhost\"]\nchallenges = [\"http-01\"]";
    let backend = format!(
        "[[backend]]\nname = \"db\"\n[[backend.server]]\naddress = \"{}\"\n",
        unused_address()
    );
    let kettle = Kettle::start(
        Setup::default()
            .listener("")
            .listener_at(setup.http(), "kind = \"redirect\"")
            .listener_at(tls, own)
            .more(&setup.table("pebble", ""))
            .more(&backend),
    );
    let root = kettle.folder.path("pebble-root.pem");
    std::fs::write(&root, pebble.root()).unwrap();
    let connect = |name: &str| {
        Tool::new("openssl")
            .args(["s_client", "-connect", &tls.to_string(), "-servername", name])
            .args(["-verify_return_error", "-verify_hostname", name, "-CAfile"])
            .args([&root])
            .input("")
            .output()
    };
    kettle.messages().wait_for("certificate of db.localhost is there");
    wait_until("the certificate is in force", || connect("db.localhost").status.success());
    assert!(!connect("other.localhost").status.success());
    assert!(kettle.messages().text().contains("http-01"));
    // A request for no challenge is sent on as before.
    let url = format!("http://{}/.well-known/acme-challenge/x", setup.http());
    let head = Tool::new("curl").args(["--silent", "--include", &url]).succeed();
    assert!(head.starts_with("HTTP/1.1 308"), "{head}");
}

#[test]
fn ctl_shows_it_and_has_it_renewed() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let metrics = unused_address();
    let kettle = Kettle::start(fetching(&setup, "").metrics(metrics));
    wait_until_served(&kettle, &pebble);
    let status = kettle.ctl(&["acme", "status"]).succeed();
    assert!(status.contains("localhost") && status.contains("pebble"), "{status}");
    let json: serde_json::Value =
        serde_json::from_str(&kettle.ctl(&["--json", "acme", "status"]).succeed()).unwrap();
    assert_eq!(json["total"], 1, "{json}");
    assert_eq!(json["sites"][0]["site"], "localhost", "{json}");

    let before = current(&kettle);
    // It is refused while the authority is asked for something.
    let renew = || kettle.ctl(&["acme", "renew", "localhost"]).output().status.success();
    wait_until("it is renewed", renew);
    wait_until("there is another", || current(&kettle) != before);
    let refused = kettle.ctl(&["acme", "renew", "localhos"]).output();
    assert!(!refused.status.success() && refused.stderr.contains("is it localhost?"));

    // Two thirds of ninety days are sixty.
    let in_fifty_days = SystemTime::now() + Duration::from_secs(50 * 86_400);
    let in_fifty_days = in_fifty_days.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let next = || -> Option<u64> {
        let scraped = scrape(metrics);
        let name = "kettle_acme_next_attempt_seconds{site=\"localhost\"} ";
        scraped.lines().find_map(|line| line.strip_prefix(name))?.parse().ok()
    };
    wait_until("the next renewal is told", || next() > Some(in_fifty_days));

    let scraped = scrape(metrics);
    for line in [
        "kettle_acme_issuer_up 1",
        "kettle_acme_attempts_total{authority=\"pebble\",outcome=\"issued\"}",
        "kettle_acme_challenges_total{kind=\"tls-alpn-01\",outcome=\"answered\"}",
    ] {
        assert!(scraped.contains(line), "{line} in\n{scraped}");
    }
}

#[test]
fn one_line_serves_a_folder_under_a_name() {
    let own = PebbleSetup::default();
    let Some(pebble) = own.start_or_skip() else { return };
    let (_, folder) = Setup::default().file("www/hello", "hello").lay_out();
    let serve = |words: &[&str]| {
        Tool::kettle(["serve", "--domain", "localhost", "--email", "ops@example.org"])
            .args(["--listen", &own.tls().to_string(), "--listen-http", &own.http().to_string()])
            .args(["--acme-directory", &own.directory(), "--acme-roots"])
            .args([folder.path("authority.pem")])
            .args(words)
            .args([folder.path("www")])
            .environment("XDG_STATE_HOME", folder.path("home"))
            .environment("HOME", folder.path("home"))
    };
    let refused = serve(&[]).output();
    assert!(!refused.status.success());
    assert!(refused.stderr.contains("add --accept-terms"), "{}", refused.stderr);
    assert!(refused.stderr.contains(&own.directory()), "{}", refused.stderr);

    let running = serve(&["--accept-terms"]).start();
    running.stdout.wait_for("https://localhost/");
    running.stderr.wait_for("certificate of localhost is there: authority, ");
    let root = folder.path("root.pem");
    std::fs::write(&root, pebble.root()).unwrap();
    let ip = own.tls().ip();
    let port = own.tls().port();
    let get = || {
        Tool::new("curl")
            .args(["--silent", "--show-error", "--fail", "--cacert"])
            .args([&root])
            .args(["--resolve", &format!("localhost:{port}:{ip}")])
            .args([format!("https://localhost:{port}/hello")])
            .output()
    };
    wait_until("it is in force", || get().status.success());
    assert_eq!(get().text(), "hello");
    let plain = Tool::new("curl").args(["--silent", "--include", "--header", "Host: localhost"]);
    let plain = plain.args([format!("http://{}/hello", own.http())]).succeed();
    assert!(plain.contains("308") && plain.contains("https://localhost/hello"), "{plain}");
}

#[test]
fn one_line_of_a_user_who_may_not_take_the_ports_says_what_to_do() {
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    if !geteuid().is_root() || first.trim().parse::<u16>().unwrap() <= 443 {
        return skip("only root can become somebody else, who may take these ports here");
    }
    let (_, folder) = Setup::default().lay_out();
    let home = folder.path("home");
    folder.write("home/is_made", "");
    for (path, mode) in [(folder.path(""), 0o755), (home.clone(), 0o777)] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let serve = Tool::new("setpriv")
        .args(["--reuid", "games", "--regid", "games", "--clear-groups"])
        .args([kettle_program(), "serve".into(), folder.path("www")])
        .args(["--domain", "example.org", "--accept-terms"])
        .environment("XDG_STATE_HOME", &home)
        .environment("HOME", &home);
    let said = serve.output();
    assert!(!said.status.success());
    let command = "sudo setcap cap_net_bind_service=+ep";
    assert!(said.stderr.contains("443") && said.stderr.contains(command), "{}", said.stderr);
    assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
}

#[test]
fn a_state_folder_in_the_layer_of_a_container_is_warned_of() {
    let own = PebbleSetup::default();
    let (_, folder) =
        fetching(&own, "").set("server", "state_directory = \"/var/lib/kettle-test\"").lay_out();
    folder.write("layer/is_made", "");
    let kettle = kettle_program();
    let layer = folder.path("layer");
    let kettle = kettle.display();
    let layer = layer.display();
    let all = folder.path("");
    let script = format!(
        "mount -t tmpfs none {layer} && cd {layer} && mkdir upper work root && \
         mount -t overlay none -o lowerdir=/,upperdir=upper,workdir=work root || exit 77\n\
         mkdir root/test && cp {kettle} {all}/*.toml {all}/*.pem {all}/*.key root/test/ && mkdir root/test/www\n\
         exec chroot root /test/kettle check /test/kettle.toml",
        all = all.display(),
    );
    let checked = Tool::new("unshare").args(["--mount", "sh", "-c", &script]).output();
    if checked.status.code() == Some(77) {
        return skip("nobody may mount an overlay here");
    }
    let said = format!("{}{}", checked.text(), checked.stderr);
    assert!(said.contains("in the container's own layer, which is lost with it"), "{said}");
}

#[test]
fn a_state_folder_that_does_not_stay_is_warned_of() {
    let state = tempfile::tempdir_in("/dev/shm");
    let Ok(state) = state else { return skip("there is no /dev/shm") };
    let own = PebbleSetup::default();
    let setting = format!("state_directory = \"{}\"", state.path().join("state").display());
    let (_, folder) = fetching(&own, "").set("server", &setting).lay_out();
    let check = |folder: &Folder| {
        let checked = Tool::kettle(["check"]).args([folder.config()]).output();
        format!("{}{}", checked.text(), checked.stderr)
    };
    let said = check(&folder);
    assert!(said.contains("in memory (tmpfs)") && said.contains("orders anew"), "{said}");
    assert!(!said.contains("in the folder of the configuration"), "{said}");
    // Beside the configuration the server opens no other file.
    let (_, folder) = fetching(&own, "").set("server", "state_directory = \"state\"").lay_out();
    std::fs::create_dir(folder.path("state")).unwrap();
    let said = check(&folder);
    assert!(said.contains("lies in the folder of the configuration"), "{said}");
}

#[test]
#[cfg(target_env = "gnu")]
fn what_the_server_had_read_is_not_in_the_memory_of_those_that_it_begins() {
    // Nobody answers there.
    let setup = PebbleSetup::default();
    let mut sites = String::new();
    for number in 0..3_000 {
        let name = format!("s{number}.many.example");
        sites += &format!(
            "[[site]]\nnames = [\"{name}\"]\nacme = {{}}\nroute = [{{ root = \"www\" }}]\n"
        );
    }
    let kettle = Kettle::start(fetching(&setup, "").more(&sites));
    kettle.wait_for_status("/issuer", "running");
    let warden = child_of(kettle.process(), "kettle-warden");
    let issuer = child_of(warden, "kettle-issuer");
    let [server, warden, issuer] = [kettle.process(), warden, issuer].map(memory_of);
    assert!(warden * 3 < server, "{warden} of {server}");
    assert!(issuer * 2 < server, "{issuer} of {server}");
}

#[test]
fn a_group_reads_certificates_that_others_do_not() {
    if !geteuid().is_root() {
        return skip("only root can give root up");
    }
    let setup = PebbleSetup::default();
    let table = setup.table("pebble", "certificates_group = \"mail\"");
    let Some(pebble) = setup.start_or_skip() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let state = folder.path().join("state");
    let as_nobody = fetching_from(&setup, "", &table)
        .set("server", "user = \"nobody\"")
        .set("server", &format!("state_directory = \"{}\"", state.display()));
    let kettle = Kettle::start(as_nobody);
    wait_until_served(&kettle, &pebble);
    let reads = |group: &str, file: &str| {
        let as_another = Tool::new("setpriv").args(["--reuid", "games", "--regid", group]);
        let cat = as_another.args(["--clear-groups", "cat"]).args([state.join(file)]);
        cat.output().status.success()
    };
    let key = "acme/certificates/localhost/current/key.pem";
    assert!(reads("mail", key) && !reads("games", key));
    assert!(!reads("mail", "acme-accounts/lock"));
    // Without it nobody does, after a reload.
    kettle.folder.change_config("certificates_group = \"mail\"", "");
    let _ = kettle.ctl(&["reload"]).succeed();
    wait_until("it is taken back", || !reads("mail", key));
    // A group that nobody knows is a mistake.
    kettle.folder.change_config("roots =", "certificates_group = \"nosuch\"\nroots =");
    let said = kettle.ctl(&["reload"]).output();
    assert!(said.text().contains("nosuch"), "{}{}", said.text(), said.stderr);
}
