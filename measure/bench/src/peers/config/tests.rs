//! The configuration of each program by setup, as `expected.txt` has it.

use std::path::{Path as FsPath, PathBuf};

use kettle_loadgen::offer::Offer;
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use super::*;
use crate::peers::subject::{CertificateKey, OwnConfig, SubjectPath};
use crate::word::Word;

/// Program, path and role; behind a comma what else there is about them.
const CASES: &[&str] = &[
    "kettle auto files",
    "kettle plain files",
    "kettle kernel-sendfile files, http2",
    "kettle user files, 1.2 session-id",
    "kettle user files, none",
    "kettle user cache",
    "kettle user proxy",
    "kettle user terminator",
    "kettle kernel-splice terminator",
    "kettle auto terminator",
    "nginx user files",
    "nginx kernel-write files",
    "nginx kernel-sendfile files, http2",
    "nginx plain files",
    "nginx user files, early-data",
    "nginx user files, 1.2 session-id",
    "nginx user files, 1.2 rsa2048 chacha20-poly1305",
    "nginx user files, none",
    "nginx user cache",
    "nginx user proxy",
    "nginx user terminator",
    "haproxy user files",
    "haproxy user proxy, http2",
    "haproxy user terminator",
    "haproxy user terminator, early-data",
    "haproxy user terminator, 1.2 session-id",
    "haproxy user terminator, none",
    "hitch user terminator",
    "stunnel user terminator",
    "stunnel user terminator, 1.2 session-id",
    "stunnel user terminator, none",
];

fn setup() -> Setup {
    Setup {
        cpus: vec![2, 4],
        workers: 2,
        key: CertificateKey::P256,
        offer: Offer {
            version: Version::Tls13,
            cipher: Cipher::Aes128Gcm,
            group: Group::X25519,
            resume_by: ResumeBy::Ticket,
            http2: None,
        },
        resumes: true,
        site: PathBuf::from("/site"),
        backend: Some("127.0.0.1:8080".parse().unwrap()),
        folder: PathBuf::from("/run"),
        config: None,
    }
}

fn filled(subject: Subject, setup: &Setup) -> String {
    let identity = Identity {
        certificate: PathBuf::from("/certificate.pem"),
        key: PathBuf::from("/key.pem"),
        both: PathBuf::from("/both.pem"),
    };
    let address = "127.0.0.1:4433".parse().unwrap();
    let stream_module = Some(FsPath::new("/modules/stream.so"));
    let input = ConfigInput { subject, setup, address, identity: &identity, stream_module };
    filled_for(subject.program, &input, template(subject.program, subject.role)).unwrap()
}

/// Changes a setup as a word says.
fn change(setup: &mut Setup, word: &str) {
    let offer = &mut setup.offer;
    if let Ok(version) = Version::from_word(word) {
        offer.version = version;
    } else if let Ok(resume_by) = ResumeBy::from_word(word) {
        offer.resume_by = resume_by;
        setup.resumes = resume_by != ResumeBy::Nothing;
    } else if let Ok(key) = CertificateKey::from_word(word) {
        setup.key = key;
    } else if word == "http2" {
        offer.http2 = Some(1);
    } else {
        offer.cipher = Cipher::from_word(word).unwrap();
    }
}

/// The first configuration of each program, and of the others the lines in which they differ from it.
#[test]
fn each_setup_has_its_configuration() {
    let site = tempfile::tempdir().unwrap();
    for bytes in [1024, 20_000] {
        std::fs::write(site.path().join(bytes.to_string()), vec![0; bytes]).unwrap();
    }
    let mut all = String::new();
    let mut first: Vec<(Program, String)> = Vec::new();
    for case in CASES {
        let (subject, about) = case.split_once(", ").unwrap_or((case, ""));
        let words: Vec<&str> = subject.split(' ').collect();
        let program = Program::from_word(words[0]).unwrap();
        let path = SubjectPath::from_word(words[1]).unwrap();
        let role = Role::from_word(words[2]).unwrap();
        let mut setup = Setup { site: site.path().to_owned(), ..setup() };
        about.split_whitespace().for_each(|word| change(&mut setup, word));
        let text = filled(Subject { program, path, role }, &setup);
        let text = text.replace(&site.path().display().to_string(), "/site");
        // Comments are for people, and hitch has a user where root starts it.
        let left_out = |line: &&str| {
            line.is_empty()
                || ["#", ";", "user = ", "group = "].iter().any(|it| line.starts_with(it))
        };
        let lines = text.lines().filter(|line| !left_out(&line.trim_start()));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        let base = first.iter().find(|(of, _)| *of == program).map(|(_, text)| text.clone());
        all += &format!("=== {case}\n");
        let Some(base) = base else {
            all += &text;
            first.push((program, text));
            continue;
        };
        for (sign, lines, others) in [('-', &base, &text), ('+', &text, &base)] {
            let differ = lines.lines().filter(|line| !others.lines().any(|it| it == *line));
            differ.for_each(|line| all += &format!("{sign} {line}\n"));
        }
    }
    if std::env::var_os("KETTLE_BLESS").is_some() {
        std::fs::write("src/peers/config/expected.txt", &all).unwrap();
    }
    let expected = std::fs::read_to_string("src/peers/config/expected.txt").unwrap();
    assert_eq!(all, expected, "KETTLE_BLESS=1 cargo test -p kettle-bench writes it anew");
}

#[test]
fn texts_of_several_lines_keep_the_indentation() {
    let words = vec![("LINES", "one\ntwo".to_owned()), ("EMPTY", String::new())];
    let text = fill("a {\n    @LINES@\n    @EMPTY@\n}\n", &words).unwrap();
    assert_eq!(text, "a {\n    one\n    two\n\n}\n");
}

#[test]
fn only_known_words_are_placeholders() {
    let words = vec![("PORT", "4433".to_owned())];
    assert_eq!(fill("@PORTS@", &words), Err("@PORTS@".to_owned()));
    assert_eq!(
        fill("me@example.org:@PORT@ (between @)", &words).unwrap(),
        "me@example.org:4433 (between @)\n"
    );
}

#[test]
fn programs_without_a_setting_for_tickets_get_it_from_openssl() {
    let mut setup = setup();
    assert_eq!(openssl_conf(Program::Hitch, &setup), None);
    setup.resumes = false;
    for program in [Program::Hitch, Program::Haproxy] {
        assert!(openssl_conf(program, &setup).unwrap().contains("NumTickets = 0"));
    }
    for program in [Program::Kettle, Program::Nginx, Program::Stunnel] {
        assert_eq!(openssl_conf(program, &setup), None, "{program}");
    }
}

#[test]
fn one_worker_keeps_one_processor_busy() {
    let one = Setup { workers: 1, ..setup() };
    assert_eq!((setup().cpus_used(), one.cpus_used()), (2, 1));
    let own = OwnConfig::Template(PathBuf::from("/own.conf"));
    assert_eq!(Setup { config: Some(own), ..one }.cpus_used(), 2);
}
