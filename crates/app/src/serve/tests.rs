use std::net::SocketAddr;

use clap::Parser;
use kettle_config::{PlainHttp, TxPathChoice};

use super::*;
use crate::cli::{Cli, Command};

fn config_of(arguments: &[&str]) -> Config {
    let all = ["kettle", "serve"].iter().chain(arguments);
    match Cli::try_parse_from(all).unwrap().command {
        Command::Serve(arguments) => config(&arguments, Path::new("/srv/www")).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn flags_become_settings() {
    let config = config_of(&[
        "--listen",
        ":9000",
        "--path",
        "kernel-write",
        "--crossover",
        "1MiB",
        "--workers",
        "3",
        "--browse",
    ]);
    assert_eq!(config.listeners[0].address.value, SocketAddr::from(([0, 0, 0, 0], 9000)).into());
    assert_eq!(config.listeners[0].https().unwrap().path, TxPathChoice::KernelWrite);
    assert_eq!(config.listeners[0].https().unwrap().crossover, 1 << 20);
    assert_eq!(config.listeners[0].https().unwrap().plain_http, PlainHttp::Redirect);
    assert_eq!(config.server.workers, Some(3));
    assert_eq!(config.limits.revalidate, Duration::ZERO, "what was saved is there at once");
    assert!(config.sites[0].routes[0].listing);
    assert_eq!(config.sites[0].routes[0].root.as_ref().unwrap().value, Path::new("/srv/www"));
    assert!(config.sites[0].self_signed);
}

#[test]
fn folders_are_listed_where_nobody_else_sees_them() {
    for (words, does_list) in [
        (&[][..], true),
        (&["--listen", "127.0.0.7:8443"], true),
        (&["--listen", "[::1]:8443"], true),
        (&["--listen", ":8443"], false),
        (&["--listen", "[::]:8443"], false),
        (&["--bind", "192.0.2.1"], false),
        (&["--listen", ":8443", "--browse"], true),
    ] {
        assert_eq!(config_of(words).sites[0].routes[0].listing, does_list, "{words:?}");
    }
}

#[test]
fn a_certificate_takes_the_place_of_the_generated_one() {
    let config = config_of(&["--cert", "c.pem", "--key", "k.pem"]);
    assert!(!config.sites[0].self_signed);
    assert_eq!(config.sites[0].certificates[0].chain.value, Path::new("c.pem"));
    assert_eq!(config.sites[0].certificates[0].key.value, Path::new("k.pem"));
}

fn serve_arguments(words: &[&str]) -> ServeArguments {
    let all = ["kettle", "serve"].iter().chain(words);
    match Cli::try_parse_from(all).unwrap().command {
        Command::Serve(arguments) => arguments,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_domain_is_served_at_the_ports_of_all_addresses() {
    let domain = &["--domain", "example.org", "--domain", "www.example.org"];
    let terms = &["--accept-terms", "--email", "ops@example.org"];
    let config = config_of(&[domain, &terms[..]].concat());
    let of = |port: u16| {
        let of_port = config.listeners.iter().filter_map(|it| it.address.socket());
        of_port.filter(|it| it.port() == port && it.ip().is_unspecified()).count()
    };
    assert!((1..=2).contains(&of(443)), "{:?}", config.listeners);
    assert_eq!(of(443), of(80));
    assert_eq!(config.acme[0].contact, ["mailto:ops@example.org"]);
    assert!(config.acme[0].directory.contains("letsencrypt.org"));
    assert_eq!(config.sites[0].names.len(), 2);
    assert!(config.sites[0].acme.is_some() && !config.sites[0].self_signed);
    assert_eq!(config.sites[0].routes[0].root.as_ref().unwrap().value, Path::new("/srv/www"));
    assert!(!config.sites[0].routes[0].listing);

    let elsewhere = ["--listen", "192.0.2.1:8443"];
    let config = config_of(&[domain, &terms[..], &elsewhere].concat());
    let addresses: Vec<String> = config.listeners.iter().map(|it| it.address.to_string()).collect();
    assert_eq!(addresses, ["192.0.2.1:8443", "192.0.2.1:80"]);
}

#[test]
fn nothing_is_asked_for_by_somebody_who_has_not_agreed() {
    let arguments = serve_arguments(&["--domain", "example.org"]);
    let refusal = domains::refusal(&arguments.domains).unwrap();
    assert!(refusal.contains("https://letsencrypt.org/repository/"), "{refusal}");
    let arguments = serve_arguments(&["--domain", "example.org", "--accept-terms"]);
    assert_eq!(domains::refusal(&arguments.domains), None);
}

#[test]
fn a_name_that_no_authority_signs_is_a_mistake() {
    let arguments = serve_arguments(&["--domain", "intranet", "--accept-terms"]);
    let mistakes = config(&arguments, Path::new("/srv/www")).unwrap_err();
    assert!(mistakes[0].to_string().contains("intranet"), "{}", mistakes[0]);
}
