use kettle_config::TxPathChoice;

use super::*;

fn serve(arguments: &[&str]) -> Result<ServeArguments, clap::Error> {
    let all = ["kettle", "serve"].iter().chain(arguments);
    match Cli::try_parse_from(all)?.command {
        Command::Serve(arguments) => Ok(arguments),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// Returns the message on a command line that is refused.
fn refused(words: &[&str]) -> String {
    let words: Vec<OsString> = ["kettle"].iter().chain(words).map(OsString::from).collect();
    with_advice(Cli::try_parse_from(&words).unwrap_err(), &words).to_string()
}

#[test]
fn an_option_of_another_server_is_told_from_a_slip() {
    for (option, meant) in [
        ("--lisen", "a similar argument exists: '--listen'"),
        ("--autoindex", "a similar argument exists: '--browse'"),
        ("--threads", "a similar argument exists: '--workers'"),
        ("--tls-cert", "a similar argument exists: '--cert'"),
        ("--auth", "`basic_auth` below [[site.route]]"),
        ("--prefix", "`prefix` below [[site.route]]"),
        ("--proxy-pass", "write `backend` below [[site.route]]"),
        ("--http3", "it is not here: HTTP/1.1 and HTTP/2 are spoken"),
    ] {
        let error = refused(&["serve", option, "x"]);
        assert!(error.contains(meant), "{option}: {error}");
        assert!(!error.contains("'--path'"), "{option}: {error}");
    }
    let error = refused(&["ctl", "status", "--wach"]);
    assert!(error.contains("'--watch'"), "{error}");
    assert!(!refused(&["serve", "--xyzzy"]).contains("tip:"));
}

#[test]
fn a_command_of_ctl_is_told_from_one_that_is_none() {
    for (word, meant) in
        [("status", "'ctl status'"), ("reload", "'ctl reload'"), ("srve", "'serve'")]
    {
        let error = refused(&[word]);
        assert!(error.contains(meant) && !error.contains("stud"), "{error}");
    }
}

#[test]
fn serve_needs_nothing() {
    let arguments = serve(&[]).unwrap();
    assert_eq!(arguments.directory, PathBuf::from("."));
    assert_eq!(arguments.address(), SocketAddr::from(([127, 0, 0, 1], 8443)));
    assert_eq!(arguments.crossover, 65_536);
    assert_eq!(arguments.path, TxPathChoice::Auto);
}

#[test]
fn listen_takes_a_port_or_an_address() {
    for (text, expected) in [
        ("9000", "127.0.0.1:9000"),
        (":9000", "0.0.0.0:9000"),
        ("localhost:9000", "127.0.0.1:9000"),
        ("*:9000", "0.0.0.0:9000"),
        ("192.0.2.1:443", "192.0.2.1:443"),
        ("[::1]:443", "[::1]:443"),
    ] {
        assert_eq!(parse_listen(text), Ok(expected.parse().unwrap()), "{text}");
    }
    for text in ["", ":", "example.org:443", "localhost:", "localhost:70000", "65536", "1.2.3.4"] {
        assert!(parse_listen(text).is_err(), "{text}");
    }
}

#[test]
fn a_certificate_needs_its_key() {
    assert!(serve(&["--cert", "c.pem"]).is_err());
    assert!(serve(&["--key", "k.pem"]).is_err());
    assert!(serve(&["--cert", "c.pem", "--key", "k.pem"]).is_ok());
}

#[test]
fn an_unknown_path_is_answered_with_the_known_ones() {
    let error = serve(&["--path", "kernel"]).unwrap_err().to_string();
    assert!(error.contains("kernel-sendfile"), "{error}");
}

#[test]
fn options_of_ctl_may_follow_its_command() {
    let cli = Cli::try_parse_from(["kettle", "ctl", "path", "user", "--json"]).unwrap();
    let Command::Ctl(arguments) = cli.command else { panic!() };
    assert!(arguments.json);
    assert_eq!(arguments.socket, PathBuf::from(DEFAULT_SOCKET));
}

#[test]
fn port_and_address_may_be_given_apart() {
    for (words, expected) in [
        (["-p", "9000"].as_slice(), "127.0.0.1:9000"),
        (&["--port", "9000", "--bind", "0.0.0.0"], "0.0.0.0:9000"),
        (&["--bind", "::1"], "[::1]:8443"),
        (&["--bind", "localhost"], "127.0.0.1:8443"),
    ] {
        assert_eq!(serve(words).unwrap().address(), expected.parse().unwrap(), "{words:?}");
    }
    assert!(serve(&["--port", "1", "--listen", ":2"]).is_err());
    assert!(serve(&["--bind", "eth0"]).is_err());
}

#[test]
fn a_configuration_is_named_with_or_without_its_flag() {
    for (words, expected) in [
        (["kettle", "check"].as_slice(), DEFAULT_CONFIG),
        (&["kettle", "check", "a.toml"], "a.toml"),
        (&["kettle", "check", "-c", "a.toml"], "a.toml"),
        (&["kettle", "check", "--config", "a.toml"], "a.toml"),
    ] {
        match Cli::try_parse_from(words).unwrap().command {
            Command::Check(argument) => assert_eq!(argument.path(), Path::new(expected)),
            other => panic!("{other:?}"),
        }
    }
    assert!(Cli::try_parse_from(["kettle", "run", "a.toml", "--config", "b.toml"]).is_err());
}
