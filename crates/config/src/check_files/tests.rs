use std::net::SocketAddr;
use std::os::unix::net::UnixListener;

use super::*;
use crate::parse;

const SITE: &str = r#"[[listener]]
address = "0.0.0.0:443"
[[site]]
names = ["a"]
error_pages = { 404 = "404.html" }
[[site.certificate]]
chain = "chain.pem"
key = "key.pem"
[[site.route]]
root = "www"
"#;

/// Checks `text` as a file of a folder that holds the named files.
fn found(files: &[(&str, &str)], folders: &[&str], text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for name in folders {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let config = parse(text, &folder.path().join("kettle.toml")).unwrap();
    let prefix = format!("{}/", folder.path().display());
    check_files(&config)
        .iter()
        .map(|diagnostic| diagnostic.to_string().replace(&prefix, ""))
        .collect()
}

const FILES: [(&str, &str); 3] = [("chain.pem", "x"), ("key.pem", "x"), ("404.html", "x")];

#[test]
fn a_complete_folder_has_no_findings() {
    assert_eq!(found(&FILES, &["www"], SITE), [""; 0]);
}

#[test]
fn missing_files_are_found_in_the_order_of_the_file() {
    let expected = [
        "kettle.toml:5:23: cannot read 404.html: No such file or directory (os error 2)\n \
         5 | error_pages = { 404 = \"404.html\" }\n   |                       ^^^^^^^^^^",
        "kettle.toml:7:9: cannot read chain.pem: No such file or directory (os error 2)\n \
         7 | chain = \"chain.pem\"\n   |         ^^^^^^^^^^^\nhelp: write \"chains.pem\"",
        "kettle.toml:8:7: cannot read key.pem: No such file or directory (os error 2)\n \
         8 | key = \"key.pem\"\n   |       ^^^^^^^^^",
        "kettle.toml:10:8: cannot open the folder www: No such file or directory (os error 2)\n \
         10 | root = \"www\"\n    |        ^^^^^",
    ];
    assert_eq!(found(&[("chains.pem", "x")], &[], SITE), expected);
}

/// Paths begin in the folder of the configuration, wherever that is read from.
#[test]
fn a_similar_name_is_shown_as_it_is_to_be_written() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("chains.pem"), "x").unwrap();
    let config = parse(SITE, &folder.path().join("kettle.toml")).unwrap();
    let diagnostics = check_files(&config);
    let chain = diagnostics.iter().find(|diagnostic| diagnostic.line == 7).unwrap();
    assert_eq!(chain.help.as_deref(), Some("write \"chains.pem\""));
}

#[test]
fn a_path_is_never_the_advice_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("chain.pem")).unwrap();
    let config = parse(SITE, &folder.path().join("kettle.toml")).unwrap();
    let diagnostics = check_files(&config);
    let chain = diagnostics.iter().find(|diagnostic| diagnostic.line == 7).unwrap();
    assert_eq!(chain.help, None, "{chain}");
}

#[test]
fn things_of_the_wrong_sort_are_found() {
    let files = [("key.pem", ""), ("404.html", "x"), ("www", "x")];
    let messages: Vec<String> = found(&files, &["chain.pem"], SITE)
        .iter()
        .map(|shown| shown.lines().next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert_eq!(messages[0], "kettle.toml:7:9: chain.pem is not a regular file");
    assert_eq!(messages[1], "kettle.toml:8:7: key.pem is empty");
    assert_eq!(messages[2], "kettle.toml:10:8: www is a file, not a folder");
}

/// As of a pipe: to open it is not to look at it.
#[test]
fn what_is_no_file_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let _socket = UnixListener::bind(folder.path().join("chain.pem")).unwrap();
    let config = parse(SITE, &folder.path().join("kettle.toml")).unwrap();
    let diagnostics = check_files(&config);
    let chain = diagnostics.iter().find(|diagnostic| diagnostic.line == 7).unwrap();
    assert!(chain.message.ends_with("chain.pem is not a regular file"), "{chain}");
}

#[test]
fn the_folder_of_a_file_without_one_is_this_one() {
    let address = SocketAddr::from(([127, 0, 0, 1], 8443));
    let config = Config::for_folder(Path::new("Cargo.toml"), address);
    let diagnostics = check_files(&config);
    assert_eq!(diagnostics[0].help.as_deref(), Some("write \".\""));
}

#[test]
fn files_kettle_makes_need_their_folder() {
    let text = format!("admin.socket = \"run/k.sock\"\nlog.access = \"logs/a.log\"\n{SITE}");
    let shown = found(&FILES, &["www", "logs"], &text);
    assert_eq!(shown.len(), 1);
    assert!(shown[0].starts_with("kettle.toml:1:16: there is no folder run"), "{}", shown[0]);
}

#[test]
fn a_log_is_no_folder_and_no_socket() {
    let folder = tempfile::tempdir().unwrap();
    let _socket = UnixListener::bind(folder.path().join("socket")).unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let shown = |log: &str| {
        let path = folder.path().join("kettle.toml");
        let found = check_files(&parse(&format!("log.access = \"{log}\"\n{SITE}"), &path).unwrap());
        let of_log = found.into_iter().filter(|it| it.line == 1);
        of_log.map(|it| it.message).collect::<Vec<_>>()
    };
    for (log, expected) in [("folder", "/folder is a folder"), ("socket", "/socket is a socket")] {
        let shown = shown(log);
        assert!(shown.len() == 1 && shown[0].ends_with(expected), "{shown:?}");
    }
    for log in ["file", "none", "/dev/null", "/dev/stdout"] {
        assert_eq!(shown(log), [""; 0], "{log}");
    }
}

#[test]
fn a_folder_given_on_the_command_line_is_checked_as_well() {
    let address = SocketAddr::from(([127, 0, 0, 1], 8443));
    let config = Config::for_folder(Path::new("/does/not/exist"), address);
    let shown: Vec<String> = check_files(&config).iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 1);
    assert!(shown[0].starts_with("cannot open the folder /does/not/exist"), "{}", shown[0]);
}

#[test]
fn an_error_page_that_is_too_large_to_be_sent_is_found() {
    let bytes = usize::try_from(ERROR_PAGE_BYTES_MAX).unwrap();
    for (bytes, expected) in [(bytes, None), (bytes + 1, Some("404.html is too large"))] {
        let page = "x".repeat(bytes);
        let files = [FILES[0], FILES[1], ("404.html", &*page)];
        let shown = found(&files, &["www"], SITE);
        assert_eq!(shown.len(), usize::from(expected.is_some()), "{shown:?}");
        let is_expected = |shown: &String| shown.contains(expected.unwrap_or_default());
        assert!(shown.iter().all(is_expected), "{shown:?}");
    }
}

#[test]
fn a_ticket_secret_has_32_bytes_and_no_more_than_4_kib() {
    let text = format!("tls.ticket_secret = \"s\"\n{SITE}");
    let short = "x".repeat(31);
    let long = "x".repeat(4_097);
    for (content, expected) in [
        (Some(&*short), "s has 31 bytes; a secret takes 32"),
        (Some(&*long), "s is too large for what it should hold"),
        (Some(""), "s is empty"),
        (None, "cannot read s: No such file"),
    ] {
        let files: Vec<_> =
            FILES.into_iter().chain(content.map(|content| ("s", content))).collect();
        let shown = found(&files, &["www"], &text);
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert!(shown[0].starts_with(&format!("kettle.toml:1:21: {expected}")), "{}", shown[0]);
    }
    let good = "x".repeat(32);
    let files: Vec<_> = FILES.into_iter().chain([("s", &*good)]).collect();
    assert_eq!(found(&files, &["www"], &text), [""; 0]);
}
