use std::path::Path;
use std::time::Duration;

use kettle_config::LogTarget;
use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;

mod growth;

/// A folder with a certificate for `localhost` and this machine, and what a configuration needs.
struct Fixture {
    directory: tempfile::TempDir,
    certificate: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("files")).unwrap();
        let names = self_signed::default_names(None);
        let generated = self_signed::load_or_generate(directory.path(), &names).unwrap();
        Self { directory, certificate: generated.chain }
    }

    /// A configuration of one site; `certificate` are the lines of its certificate.
    fn config(&self, name: &str, certificate: &str) -> Config {
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:8443\"\n[[site]]\nnames = [\"{name}\"]\n\
             [[site.certificate]]\n{certificate}[[site.route]]\nroot = \"files\"\n"
        );
        kettle_config::parse(&text, &self.directory.path().join("kettle.toml")).unwrap()
    }

    fn own_certificate(&self) -> String {
        let path = self.certificate.display();
        format!("chain = \"{path}\"\nkey = \"{path}\"\n")
    }

    fn check(&self, name: &str, certificate: &str) -> Report {
        check(&self.config(name, certificate))
    }
}

fn places(diagnostics: &[Diagnostic]) -> Vec<(usize, usize)> {
    diagnostics.iter().map(|diagnostic| (diagnostic.line, diagnostic.column)).collect()
}

#[test]
fn a_certificate_that_fits_is_no_finding() {
    let fixture = Fixture::new();
    let report = fixture.check("localhost", &fixture.own_certificate());
    assert!(report.mistakes.is_empty(), "{:?}", report.mistakes);
}

#[test]
fn a_name_no_certificate_has_is_named_where_it_stands() {
    let fixture = Fixture::new();
    let report = fixture.check("example.org", &fixture.own_certificate());
    assert_eq!(places(&report.mistakes), [(4, 10)], "{:?}", report.mistakes);
    assert!(report.mistakes[0].message.contains("example.org"), "{}", report.mistakes[0]);
    assert!(
        report.mistakes[0].message.contains("127.0.0.1, ::1, localhost"),
        "{}",
        report.mistakes[0]
    );
}

#[test]
fn a_certificate_without_names_is_said_to_have_none() {
    assert_eq!(identities::listed(&[]), "no name at all");
}

#[test]
fn a_server_starts_with_what_check_calls_a_mistake_of_names() {
    let fixture = Fixture::new();
    let config = fixture.config("example.org", &fixture.own_certificate());
    let resumption = SharedResumption::new(Duration::from_secs(3600), 16).unwrap();
    let loaded =
        prepare(config, &resumption, &LoadFor::Start).unwrap_or_else(|found| panic!("{found:?}"));
    assert_eq!(places(&loaded.warnings), [(4, 10)]);
}

#[test]
fn what_runs_out_is_told_of_once_and_then() {
    let fixture = Fixture::new();
    let [roots, lists] = ["clients.pem", "clients.crl"].map(|it| fixture.directory.path().join(it));
    std::fs::write(&roots, include_str!("tests/authority.pem")).unwrap();
    std::fs::write(&lists, include_str!("tests/authority.crl")).unwrap();
    let asking = "[site.client_auth]\nroots = \"clients.pem\"\ncrl = \"clients.crl\"\n";
    let certificate = format!("{}{asking}", fixture.own_certificate());
    let config = fixture.config("localhost", &certificate);
    let resumption = SharedResumption::new(Duration::from_secs(3600), 16).unwrap();
    let loaded =
        prepare(config, &resumption, &LoadFor::Start).unwrap_or_else(|found| panic!("{found:?}"));
    assert_eq!(loaded.warnings, []);
    let second = Duration::from_secs(1);
    // That of the fixture: 2100-01-01 00:00:00.
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(4_102_444_800);
    let beginning = format!("the revocation list {}", lists.display());
    let said = loaded.ended(end - second, end);
    assert!(matches!(&said[..], [one] if one.starts_with(&beginning)), "{said:?}");
    assert_eq!(loaded.ended(end, end + second), [""; 0]);
    assert_eq!(loaded.ended(end - 2 * second, end - second), [""; 0]);
}

#[test]
fn a_missing_key_does_not_hide_a_broken_chain() {
    let fixture = Fixture::new();
    let chain = fixture.directory.path().join("chain.pem");
    std::fs::write(&chain, "not a certificate\n").unwrap();
    let report = fixture.check("localhost", "chain = \"chain.pem\"\nkey = \"missing.pem\"\n");
    assert_eq!(places(&report.mistakes), [(6, 9), (7, 7)], "{:?}", report.mistakes);
}

#[test]
fn a_key_of_another_certificate_is_named_where_it_stands() {
    let fixture = Fixture::new();
    let other = Fixture::new();
    let certificate = format!(
        "chain = \"{}\"\nkey = \"{}\"\n",
        fixture.certificate.display(),
        other.certificate.display()
    );
    let report = fixture.check("localhost", &certificate);
    assert_eq!(places(&report.mistakes), [(7, 7)], "{:?}", report.mistakes);
    assert!(report.mistakes[0].message.contains("does not belong"), "{}", report.mistakes[0]);
}

#[test]
fn check_generates_no_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::for_folder(directory.path(), ([127, 0, 0, 1], 8443).into());
    config.server.state_directory = directory.path().join("state");
    assert!(check(&config).mistakes.is_empty());
    assert!(!config.server.state_directory.exists());
}

#[test]
fn a_log_on_a_pipe_needs_its_reader() {
    let fixture = Fixture::new();
    let pipe = fixture.directory.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let mut config = fixture.config("localhost", &fixture.own_certificate());
    config.log.access = LogTarget::Path(pipe.clone());
    let warned = || {
        let report = check(&config);
        assert!(report.mistakes.is_empty(), "{:?}", report.mistakes);
        report.warnings.iter().any(|it| it.message.contains("nobody reads the pipe"))
    };
    assert!(warned());
    let mut options = std::fs::OpenOptions::new();
    let _both_ends = options.read(true).write(true).open(&pipe).unwrap();
    assert!(!warned());
}

#[test]
fn a_user_or_group_that_is_not_there_is_named_where_it_stands() {
    let fixture = Fixture::new();
    for (accounts, place) in [
        ("user = \"no-such-user\"\ngroup = \"root\"\n", (2, 8)),
        ("user = \"root\"\ngroup = \"no-such-group\"\n", (3, 9)),
    ] {
        let text = format!(
            "[server]\n{accounts}[[listener]]\naddress = \"127.0.0.1:8443\"\n[[site]]\n\
             names = [\"_\"]\nself_signed = true\n[[site.route]]\nroot = \"files\"\n"
        );
        let path = fixture.directory.path().join("kettle.toml");
        let report = check(&kettle_config::parse(&text, &path).unwrap());
        assert_eq!(places(&report.mistakes), [place], "{:?}", report.mistakes);
    }
}

#[test]
fn certificates_of_a_listener_that_ask_differently_are_told_of() {
    let asking = "[listener.certificate.client_auth]\nmode = \"required\"\nroots = \"ca\"\n";
    let found = |second: &str| {
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:8443\"\nkind = \"tls\"\nbackend = \"app\"\n\
             [[listener.certificate]]\nchain = \"a\"\nkey = \"a\"\n{asking}\
             [[listener.certificate]]\nchain = \"b\"\nkey = \"b\"\n{second}\
             [[backend]]\nname = \"app\"\n[[backend.server]]\naddress = \"127.0.0.1:80\"\n"
        );
        let config = kettle_config::parse(&text, std::path::Path::new("kettle.toml")).unwrap();
        places(&open_doors::warnings(&config, &Reach::of(&config)))
    };
    assert_eq!(found(asking), []);
    assert_eq!(found(""), [(6, 9)]);
}

/// Returns what is said of ways around certificates, by the line it is said at.
fn open_doors_of(statements: &[&str]) -> Vec<(usize, String)> {
    let backend = "[[backend]]\nname = \"app\"\n[[backend.server]]\naddress = \"127.0.0.1:80\"\n";
    let text = statements.concat() + backend;
    let config = kettle_config::parse(&text, Path::new("kettle.toml")).unwrap();
    let warnings = open_doors::warnings(&config, &Reach::of(&config));
    warnings.into_iter().map(|warning| (warning.line, warning.message)).collect()
}

const TLS: &str = "[[listener]]\naddress = \"127.0.0.1:8443\"\nkind = \"tls\"\n";
const HTTPS: &str = "[[listener]]\naddress = \"127.0.0.1:8444\"\n";
const TCP: &str = "[[listener]]\naddress = \"127.0.0.1:8445\"\nkind = \"tcp\"\nbackend = \"app\"\n";
const ASKED: &str = "[site.client_auth]\nroots = \"ca\"\n";
const OPTIONAL: &str = "[site.client_auth]\nmode = \"optional\"\nroots = \"ca\"\n";
const OTHERS: &str = "[site.client_auth]\nroots = \"other\"\n";
const FILES: &str = "[[site.route]]\nroot = \"files\"\n";
const ROUTE: &str = "[[site.route]]\nbackend = \"app\"\n";

/// A site whose connections on `tls` listeners go to the backend.
fn carried(name: &str) -> String {
    format!("{}backend = \"app\"\n", routed(name))
}

fn routed(name: &str) -> String {
    format!("[[site]]\nnames = [\"{name}\"]\nself_signed = true\n")
}

#[test]
fn sites_of_one_backend_that_ask_differently_are_told_of() {
    let a = carried("a");
    let b = carried("b");
    let found = open_doors_of(&[TLS, &a, ASKED, &b]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, 9);
    assert!(found[0].1.contains("the site \"b\" reach \"app\""), "{found:?}");
    assert_eq!(open_doors_of(&[TLS, &b, &a, ASKED]).len(), 1);
    // One pair is told of once, also where each asks for what the other does not.
    assert_eq!(open_doors_of(&[TLS, &a, ASKED, &b, OTHERS]).len(), 1);
    assert_eq!(open_doors_of(&[TLS, &a, ASKED, &b, OPTIONAL]).len(), 1);
    assert_eq!(open_doors_of(&[TLS, &a, ASKED, &b, ASKED]), []);
    // A client that may come without one comes in anyway.
    assert_eq!(open_doors_of(&[TLS, &a, OPTIONAL, &b]), []);
    assert_eq!(open_doors_of(&[TLS, &a, ASKED, TCP]).len(), 1);
}

#[test]
fn thousands_of_sites_of_one_backend_are_told_of_once() {
    let sites: String = (0..3000).map(|number| carried(&format!("s{number}"))).collect();
    assert_eq!(open_doors_of(&[TLS, &carried("a"), ASKED, &sites]).len(), 1);
}

#[test]
fn sites_told_apart_by_the_name_in_a_request_may_ask_differently() {
    let a = routed("a");
    let b = routed("b");
    let any = routed("_");
    assert_eq!(open_doors_of(&[HTTPS, &a, ROUTE, ASKED, &b, ROUTE]), []);
    assert_eq!(open_doors_of(&[HTTPS, &a, ROUTE, ASKED, &any, ROUTE]), []);
    let both = [HTTPS, TLS].concat();
    // Another site of a `tls` listener reaches it, whatever the request inside is for.
    assert_eq!(open_doors_of(&[&both, &a, ROUTE, ASKED, &carried("b")]).len(), 1);
    // The default site answers for a name that only the other kind of listener has.
    assert_eq!(open_doors_of(&[&both, &carried("a"), ASKED, &any, ROUTE]).len(), 1);
    assert_eq!(open_doors_of(&[&both, &carried("a"), ASKED, &b, ROUTE]), []);
    assert_eq!(open_doors_of(&[&both, &carried("a"), ROUTE, ASKED, &any, ROUTE]), []);
}

/// The statement of a certificate for these names.
fn write_certificate(folder: &Path, name: &str, names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = self_signed::load_or_generate(&folder.join(name), &names).unwrap();
    certificate(&made.chain, &made.key)
}

fn certificate(chain: &Path, key: &Path) -> String {
    let chain = chain.display();
    let key = key.display();
    format!("[[site.certificate]]\nchain = \"{chain}\"\nkey = \"{key}\"\n")
}

fn config(text: &str, folder: &Path) -> Config {
    kettle_config::parse(text, &folder.join("kettle.toml")).unwrap()
}

/// Identities of a server that starts, and what is to be said of them.
fn identities(config: &Config) -> (LoadedIdentities, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let known = &mut KnownIdentities::default();
    let loaded = load_identities(config, &Reach::of(config), (known, None), &mut diagnostics);
    (loaded, diagnostics)
}

fn site(names: &str) -> String {
    format!("[[site]]\nnames = [{names}]\n")
}

#[test]
fn a_name_that_one_type_of_key_lacks_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, names: &[&str]| write_certificate(folder.path(), name, names);
    let both = write("both", &["rsa.example", "b.example"]);
    let other = write("other", &["rsa.example"]);
    let chain = folder.path().join("rsa");
    let key = folder.path().join("rsa-key");
    std::fs::write(&chain, include_bytes!("../../../tls/src/identity/fixtures/rsa.pem")).unwrap();
    let rsa_key = include_bytes!("../../../tls/src/identity/fixtures/rsa-key-pkcs1.pem");
    std::fs::write(&key, rsa_key).unwrap();
    let rsa = certificate(&chain, &key);
    let found = |certificates: &[&str]| {
        let names = site("\"rsa.example\", \"b.example\"");
        let text = [HTTPS, &names, &certificates.concat(), FILES].concat();
        let mut diagnostics = identities(&config(&text, folder.path())).1;
        let is_told = |it: &Diagnostic| it.message.contains("type of key");
        diagnostics.warnings.retain(is_told);
        places(&diagnostics.warnings)
    };
    assert_eq!(found(&[&both]), []);
    assert_eq!(found(&[&both, &other]), []);
    assert_eq!(found(&[&both, &rsa]), [(4, 25)]);
}

#[test]
fn a_site_named_by_an_address_is_the_one_that_clients_by_address_meet() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, names: &[&str]| write_certificate(folder.path(), name, names) + FILES;
    let a = write("a", &["a.example"]);
    let b = write("b", &["b.example", "192.0.2.7"]);
    let found = |statements: &[&str]| {
        let text = statements.concat();
        let diagnostics = identities(&config(&text, folder.path())).1;
        let told = diagnostics.serious.into_iter();
        told.map(|it| (it.line, it.message)).collect::<Vec<_>>()
    };
    let first = site("\"a.example\"");
    let second = site("\"b.example\", \"192.0.2.7\"");
    let told = found(&[HTTPS, &first, &a, &second, &b]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].1.contains("see the certificate of `a.example`"), "{told:?}");
    assert_eq!(found(&[HTTPS, &first, &a, &second, "default = true\n", &b]), []);
    assert_eq!(found(&[HTTPS, &second, &b, &first, &a]), []);
    let told = found(&[HTTPS, &second, &b, ASKED, &first, &a]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].1.contains("not asked for the certificate"), "{told:?}");
    assert_eq!(found(&[HTTPS, &second, "default = true\n", &b, ASKED, &first, &a]), []);
}

#[test]
fn a_generated_certificate_is_in_the_place_of_its_site() {
    let folder = tempfile::tempdir().unwrap();
    let with_files = write_certificate(folder.path(), "b", &["b.example"]);
    let first = site("\"a.example\", \"**.deep.example\"") + "self_signed = true\n" + FILES;
    let text = [HTTPS, &first, &site("\"b.example\""), &with_files, FILES].concat();
    let mut config = config(&text, folder.path());
    config.server.state_directory = folder.path().join("state");
    let (mut loaded, mut diagnostics) = identities(&config);
    load_generated(&config, None, &mut loaded, &mut diagnostics).unwrap();
    let sites: Vec<_> = config.sites.iter().enumerate().collect();
    let names = Arc::new(kettle_handlers::site_names::site_names(sites.iter().copied()));
    let shown = loaded.shown_by(&names, &sites, config.default_site());
    let shown = shown.choose(None, &[], true).unwrap();
    assert!(shown.covers("a.example") && shown.covers("x.deep.example"), "{shown:?}");
    assert!(!shown.names().iter().any(|name| name.starts_with("**")), "{shown:?}");
    assert_eq!(loaded.all().len(), 2);
}

/// A configuration with listeners of its own for these files, made from another that names them in one place.
fn made(folder: &Path, files: &[&str]) -> Config {
    let path = |file: &str| folder.join(file).display().to_string();
    let certificate = |file: &&str| {
        let path = path(file);
        format!("[[listener.certificate]]\nchain = \"{path}\"\nkey = \"{path}\"\n")
    };
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:1\"\nkind = \"tls\"\nbackend = \"b\"\n{}\
         [[backend]]\nname = \"b\"\n[[backend.server]]\naddress = \"127.0.0.1:2\"\n",
        files.iter().map(certificate).collect::<String>()
    );
    let dir = kettle_config::Origin {
        path: folder.join("hitch.conf"),
        at: kettle_config::Position { line: 3, column: 11 },
        written: "\"pems\"".to_owned(),
        source_line: None,
    };
    let origins = vec![Some(dir.clone()); text.lines().count()];
    kettle_config::parse_made(&text, &dir.path, kettle_config::Origins::new(origins)).unwrap()
}

#[test]
fn each_broken_file_of_one_place_is_told() {
    let fixture = Fixture::new();
    let folder = fixture.directory.path();
    std::fs::write(folder.join("a"), "broken").unwrap();
    std::fs::write(folder.join("a.2"), "").unwrap();
    std::fs::copy(&fixture.certificate, folder.join("good")).unwrap();
    let mistakes = check(&made(folder, &["a", "a.2", "good", "none", "a"])).mistakes;
    let told = |file: &str| {
        let name = folder.join(file).display().to_string();
        mistakes.iter().filter(|mistake| diagnostics::names(&mistake.message, &name)).count()
    };
    assert_eq!(["a", "a.2", "good", "none"].map(told), [1, 1, 0, 1], "{mistakes:?}");
    assert_eq!(places(&mistakes), [(3, 11); 3]);
}

/// A configuration whose certificates are fetched, and where that of its site is to lie.
fn fetching(folder: &Path, site: &str) -> (Config, PathBuf) {
    let text = format!(
        "[server]\nstate_directory = \"state\"\n[[acme]]\nname = \"own\"\ndirectory = \"https://ca.example/\"\n\
         roots = \"roots.pem\"\naccept_terms = true\n[[listener]]\naddress = \"127.0.0.1:443\"\n[[site]]\nnames = [\"a.example\", \"b.example\"]\n\
         acme = {{}}\n{site}{FILES}"
    );
    std::fs::create_dir(folder.join("files")).unwrap();
    std::fs::write(folder.join("roots.pem"), include_str!("tests/authority.pem")).unwrap();
    let config = kettle_config::parse(&text, &folder.join("kettle.toml"));
    let config = config.unwrap_or_else(|found| panic!("{found:?}"));
    (config, folder.join("state/acme/certificates/a.example/current"))
}

fn put(folder: &Path, names: &[&str]) {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let pem = self_signed::generate_pem(&names, kettle_tls::identity::KeyKind::EcdsaP256).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("chain.pem"), pem.certificate).unwrap();
    std::fs::write(folder.join("key.pem"), &*pem.key).unwrap();
}

#[test]
fn a_certificate_that_is_fetched_is_awaited_taken_and_kept_where_the_next_one_is_broken_or_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (config, current) = fetching(folder.path(), "");
    let resumption = SharedResumption::new(Duration::from_secs(3600), 16).unwrap();
    let of = |load_for: &LoadFor<'_>| {
        let loaded = prepare(config.clone(), &resumption, load_for);
        loaded.unwrap_or_else(|found| panic!("{found:?}"))
    };
    let started = of(&LoadFor::Start);
    assert_eq!(started.warnings, []);
    assert_eq!(started.identities.len(), 0);
    assert!(started.served.challenges.is_some());

    put(&current, &["a.example"]);
    let renewed = of(&LoadFor::Renewal(&started));
    assert!(renewed.identities[0].covers("a.example"));
    put(&current, &["a.example", "b.example"]);
    let renewed = of(&LoadFor::Renewal(&renewed));
    assert!(renewed.identities[0].covers("b.example"));

    std::fs::write(current.join("key.pem"), "broken").unwrap();
    let broken = of(&LoadFor::Renewal(&renewed));
    assert!(broken.identities[0].covers("b.example"));
    assert!(broken.warnings[0].message.contains("stays as it was"), "{:?}", broken.warnings);
    std::fs::rename(&current, folder.path().join("elsewhere")).unwrap();
    let moved = of(&LoadFor::Renewal(&broken));
    assert!(moved.identities[0].covers("b.example"));
    assert!(moved.warnings[0].message.contains("stays as it was"), "{:?}", moved.warnings);
    // A start has none that it could keep.
    assert_eq!(of(&LoadFor::Start).identities.len(), 0);
}

#[test]
fn a_generated_certificate_is_shown_until_one_is_fetched_for_each_name() {
    let folder = tempfile::tempdir().unwrap();
    let (config, current) = fetching(folder.path(), "self_signed = true\n");
    put(&current, &["a.example"]);
    let (mut loaded, mut diagnostics) = identities(&config);
    load_generated(&config, None, &mut loaded, &mut diagnostics).unwrap();
    let names: Vec<_> = loaded.all().iter().map(|identity| identity.names().to_vec()).collect();
    assert_eq!(names[0], ["a.example"]);
    assert!(names[1].contains(&"b.example".to_owned()), "{names:?}");
}
