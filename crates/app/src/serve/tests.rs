use std::net::SocketAddr;

use clap::Parser;
use kettle_config::{PlainHttp, TxPathChoice};

use super::*;
use crate::cli::{Cli, Command};

fn config_of(arguments: &[&str]) -> Config {
    let all = ["kettle", "serve"].iter().chain(arguments);
    match Cli::try_parse_from(all).unwrap().command {
        Command::Serve(arguments) => config(&arguments, Path::new("/srv/www")),
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
