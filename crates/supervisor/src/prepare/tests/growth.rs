//! The cost of a start and a reload with many of a kind: no more than their number times that of one.
//!
//! Processor time of this thread is counted, one test at a time, so others on the machine can only make a try dearer, and of several
//! tries the least counts. Work that grows as it should costs eight times as much for eight times as many, or less; each held
//! against all others of its kind soon costs 64 times as much. The bound lies far from both.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use kettle_kernel::process::thread_cpu_time;

use super::*;
use crate::bind::bind;

const FEW: usize = 500;
const MANY: usize = 8 * FEW;

/// The factor by which many may be dearer than few: 2.5 for each doubling.
const TIMES_MAX: u32 = 16;
const TRIES: usize = 5;

/// Others that allocate meanwhile would make many dearer than few.
static ALONE: Mutex<()> = Mutex::new(());

/// Processor time of a start with this configuration, and of a reload of the same.
fn cost(fixture: &Fixture, text: &str) -> Duration {
    let path = fixture.directory.path().join("kettle.toml");
    let resumption = SharedResumption::new(Duration::from_secs(3600), 16).unwrap();
    let began = thread_cpu_time();
    let load = |load_for: &LoadFor<'_>| {
        let config = kettle_config::parse(text, &path).map_err(|found| found.len())?;
        prepare(config, &resumption, load_for).map_err(|found| found.len())
    };
    if let Ok(loaded) = load(&LoadFor::Start) {
        let reloaded = load(&LoadFor::Reload(&loaded)).unwrap();
        reloaded.served.backends.put_in_force();
        let held: Vec<_> = reloaded.served.config.listeners.iter().rev().map(held).collect();
        assert_eq!(bind(&reloaded.served.config, 0, &held, &[]).unwrap().len(), held.len());
    }
    thread_cpu_time() - began
}

fn held(listener: &kettle_config::Listener) -> crate::bind::BoundAddress {
    crate::bind::BoundAddress::without_sockets(listener.address.value.clone())
}

/// Fails if many cost too much more than few in each try.
fn assert_linear(what: &str, text: impl Fn(&Fixture, usize) -> String) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let fixture = Fixture::new();
    let few = text(&fixture, FEW);
    let many = text(&fixture, MANY);
    let mut least_few = Duration::MAX;
    let mut least_many = Duration::MAX;
    for _ in 0..TRIES {
        least_few = least_few.min(cost(&fixture, &few));
        least_many = least_many.min(cost(&fixture, &many));
        if least_many <= least_few * TIMES_MAX {
            return;
        }
    }
    panic!("{FEW} {what} take {least_few:?}, {MANY} take {least_many:?}");
}

/// A text of a beginning and a part for each number.
fn each(beginning: &str, count: usize, part: impl Fn(usize) -> String) -> String {
    let mut text = beginning.to_owned();
    for number in 0..count {
        let _ = writeln!(text, "{}", part(number));
    }
    text
}

const HTTPS: &str = "[[listener]]\naddress = \"127.0.0.1:8443\"\n";
const TLS: &str = "[[listener]]\naddress = \"127.0.0.1:8443\"\nkind = \"tls\"\n";

fn certificate(fixture: &Fixture) -> String {
    format!("[[site.certificate]]\n{}", fixture.own_certificate())
}

fn site(fixture: &Fixture) -> String {
    format!("{HTTPS}[[site]]\nnames = [\"localhost\"]\n{}", certificate(fixture))
}

fn backend(number: usize) -> String {
    let port = 1_024 + number;
    format!(
        "[[backend]]\nname = \"b{number}\"\n[[backend.server]]\naddress = \"127.0.0.1:{port}\"\n"
    )
}

fn address(number: usize) -> SocketAddr {
    let [_, _, high, low] = u32::try_from(number).unwrap().to_be_bytes();
    SocketAddr::from(([127, 1, high, low], 8443))
}

#[test]
fn sites_with_a_route_each_cost_what_one_costs() {
    assert_linear("sites", |fixture, count| {
        let certificate = certificate(fixture);
        each(HTTPS, count, |number| {
            let name = format!("[[site]]\nnames = [\"s{number}.example.org\"]\n");
            format!("{name}{certificate}[[site.route]]\nroot = \"files\"")
        })
    });
}

#[test]
fn sites_named_by_addresses_cost_what_one_costs() {
    assert_linear("sites by address", |fixture, count| {
        let certificate = certificate(fixture);
        each(HTTPS, count, |number| {
            let name = format!("[[site]]\nnames = [\"{}\"]\n", address(number).ip());
            format!("{name}{certificate}[[site.route]]\nroot = \"files\"")
        })
    });
}

#[test]
fn sites_with_a_backend_each_cost_what_one_costs() {
    assert_linear("sites with backends", |fixture, count| {
        let certificate = certificate(fixture);
        each(TLS, count, |number| {
            let name = format!("[[site]]\nnames = [\"s{number}.example.org\"]\n");
            format!("{name}backend = \"b{number}\"\n{certificate}{}", backend(number))
        })
    });
}

#[test]
fn tls_listeners_with_a_site_each_cost_what_one_costs() {
    assert_linear("tls listeners", |fixture, count| {
        let certificate = certificate(fixture);
        each("", count, |number| {
            let address = address(number);
            let name = format!("s{number}.example.org");
            let listener = format!(
                "[[listener]]\naddress = \"{address}\"\nkind = \"tls\"\nsites = [\"{name}\"]\n\
                 truncation = \"reset\"\nalpn = [\"h2\"]\n"
            );
            let site = format!("[[site]]\nnames = [\"{name}\"]\nbackend = \"b{number}\"\n");
            format!("{listener}{site}{certificate}{}", backend(number))
        })
    });
}

#[test]
fn tcp_listeners_with_a_backend_each_cost_what_one_costs() {
    assert_linear("tcp listeners", |_, count| {
        each("", count, |number| {
            let address = address(number);
            let listener = format!(
                "[[listener]]\naddress = \"{address}\"\nkind = \"tcp\"\nbackend = \"b{number}\"\n"
            );
            listener + &backend(number)
        })
    });
}

#[test]
fn routes_with_a_backend_each_cost_what_one_costs() {
    assert_linear("routes with backends", |fixture, count| {
        let routes = each(&site(fixture), count, |number| {
            format!("[[site.route]]\nprefix = \"/p{number}\"\nbackend = \"b{number}\"")
        });
        each(&routes, count, backend)
    });
}

#[test]
fn routes_with_a_root_each_cost_what_one_costs() {
    assert_linear("roots", |fixture, count| {
        each(&site(fixture), count, |number| {
            let root = format!("roots/{number}");
            std::fs::create_dir_all(fixture.directory.path().join(&root)).unwrap();
            format!("[[site.route]]\nprefix = \"/p{number}\"\nroot = \"{root}\"")
        })
    });
}

#[test]
fn redirects_cost_what_one_costs() {
    assert_linear("redirects", |fixture, count| {
        let site = format!("{}[[site.route]]\nroot = \"files\"\n", site(fixture));
        each(&site, count, |number| {
            format!("[[site.route.redirect]]\nfrom = \"/old{number}\"\nto = \"/new{number}\"")
        })
    });
}

#[test]
fn caches_with_a_route_each_cost_what_one_costs() {
    assert_linear("caches", |fixture, count| {
        let caches = each(&site(fixture), count, |number| {
            let folder = format!("caches/{number}");
            std::fs::create_dir_all(fixture.directory.path().join(&folder)).unwrap();
            let route = format!("[[site.route]]\nprefix = \"/p{number}\"\nbackend = \"b0\"\n");
            let cache = format!("[[cache]]\nname = \"c{number}\"\ndirectory = \"{folder}\"\n");
            format!(
                "{route}cache.store = \"c{number}\"\n{cache}size = \"2 MiB\"\nmax_object = \"1 MiB\""
            )
        });
        caches + &backend(0)
    });
}

#[test]
fn servers_of_a_backend_cost_what_one_costs() {
    assert_linear("servers", |_, count| {
        let beginning = "[[listener]]\naddress = \"127.0.0.1:443\"\nkind = \"tcp\"\nbackend = \"b\"\n\
                         [[backend]]\nname = \"b\"\n";
        each(beginning, count, |number| {
            format!("[[backend.server]]\naddress = \"{}\"", address(number))
        })
    });
}

#[test]
fn certificates_of_a_listener_that_ask_for_others_cost_what_one_costs() {
    assert_linear("certificates of a listener", |fixture, count| {
        let own = fixture.own_certificate();
        let listener = format!("{TLS}backend = \"b0\"\n");
        let certificates = each(&listener, count, |number| {
            // Each is another, and all are one file.
            let roots = format!("{}{}", "./".repeat(number % 100), "/".repeat(number / 100 + 1));
            let roots = format!("{roots}{}", fixture.certificate.display());
            format!(
                "[[listener.certificate]]\n{own}[listener.certificate.client_auth]\nroots = \"{roots}\""
            )
        });
        certificates + &backend(0)
    });
}

#[test]
fn names_that_nobody_has_cost_what_one_costs() {
    assert_linear("unknown backends", |fixture, count| {
        let routes = each(&site(fixture), count, |number| {
            format!("[[site.route]]\nprefix = \"/p{number}\"\nbackend = \"x{number}\"")
        });
        each(&routes, count, backend)
    });
}

#[test]
fn files_that_are_missing_cost_what_one_costs() {
    assert_linear("missing files", |_, count| {
        each(HTTPS, count, |number| {
            let chain = format!("chain = \"none/{number}.pem\"\nkey = \"none/{number}.key\"\n");
            let name = format!("[[site]]\nnames = [\"s{number}.example.org\"]\n");
            format!("{name}[[site.certificate]]\n{chain}[[site.route]]\nroot = \"files\"")
        })
    });
}
