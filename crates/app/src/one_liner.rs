//! The common part of the commands that are a configuration by themselves: `serve`, `terminate`, `originate`.

use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::ExitCode;

use kettle_config::{ANY_NAME, Config, ListenAddress, Located, LogFormat, LogTarget};
use kettle_supervisor::Supervisor;
use kettle_supervisor::prepare::MadeCertificate;

use crate::logging;
use crate::output::print_line;
use crate::run;

/// Runs a configuration until told to stop, with messages from this level on; `greet` says where it can be reached.
pub(crate) fn run(config: Config, level: &str, greet: impl FnOnce(&Supervisor)) -> ExitCode {
    logging::start(level);
    match run::start(config, None) {
        Ok(supervisor) => run::run_to_end(supervisor, greet),
        Err(code) => code,
    }
}

/// Somebody who watches gets a short line for each response or tunnel, at once.
pub(crate) fn log_to_terminal(config: &mut Config) {
    if io::stdout().is_terminal() {
        config.log.access = LogTarget::Stdout;
        config.log.format = LogFormat::Short;
        config.log.buffer = 0;
    }
}

/// The names of the only site: whatever name the machine is reached by. A certificate made for it is for the addresses too,
/// which is how clients name a server that `localhost` does not reach.
pub(crate) fn site_names(address: SocketAddr, is_made: bool) -> Vec<Located<String>> {
    let ips = if is_made { reached_at(address.ip()) } else { Vec::new() };
    let names = [ANY_NAME.to_owned()].into_iter().chain(ips.iter().map(IpAddr::to_string));
    names.map(Located::not_written).collect()
}

/// The addresses by which other devices reach what listens on this one. Of a machine with many, it is the one that it uses
/// itself to reach others.
fn reached_at(ip: IpAddr) -> Vec<IpAddr> {
    if !ip.is_unspecified() {
        return vec![ip];
    }
    let own = |here: IpAddr, there: IpAddr| {
        let socket = UdpSocket::bind((here, 0)).ok()?;
        // Nothing is sent: the kernel only picks the way.
        socket.connect((there, DISCARD_PORT)).ok()?;
        Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
    };
    let by_ipv4 = own(Ipv4Addr::UNSPECIFIED.into(), FAR_IPV4.into());
    let by_ipv6 = own(Ipv6Addr::UNSPECIFIED.into(), FAR_IPV6.into()).filter(|_| ip.is_ipv6());
    by_ipv4.into_iter().chain(by_ipv6).collect()
}

/// Returns the URLs for a browser on another device, where others reach this machine.
pub(crate) fn urls_for_others(address: SocketAddr) -> Vec<String> {
    let ips = if address.ip().is_unspecified() { reached_at(address.ip()) } else { Vec::new() };
    ips.into_iter().map(|ip| url(SocketAddr::new(ip, address.port()))).collect()
}

/// Says which certificates are shown, and how to trust one that was made here.
pub(crate) fn print_certificates(supervisor: &Supervisor) {
    for fingerprint in supervisor.fingerprints() {
        print_line(format_args!("Certificate: SHA-256 {fingerprint}"));
    }
    if let (Some(made), Some(address)) = (
        supervisor.made_certificate(),
        supervisor.addresses().first().and_then(ListenAddress::socket),
    ) {
        print_line(how_to_trust(made, address));
    }
}

/// The certificate was made on this machine, so that clients warn until they are told to trust it.
fn how_to_trust(made: &MadeCertificate, address: SocketAddr) -> String {
    let url = url(address);
    match made {
        MadeCertificate::KeptIn(file) => {
            let file = file.display();
            format!(
                "Made on this machine. Trust it: curl --cacert {file} {url}\n\
                 In Chromium and Chrome: certutil -d sql:$HOME/.pki/nssdb -A -t P,, -n kettle -i {file}"
            )
        }
        MadeCertificate::InMemory { reason } => {
            let host = url.trim_start_matches("https://").trim_end_matches('/');
            let port = if address.port() == HTTPS_PORT { ":443" } else { "" };
            format!(
                "Made for this run only ({reason}). Trust it:\n  \
                 openssl s_client -connect {host}{port} </dev/null 2>/dev/null | openssl x509 >kettle.pem\n  \
                 curl --cacert kettle.pem {url}"
            )
        }
    }
}

/// Returns the URL for a browser on this machine.
pub(crate) fn url(address: SocketAddr) -> String {
    let port = address.port();
    let host = match address.ip() {
        ip if is_localhost(ip) || ip.is_unspecified() => "localhost".to_owned(),
        IpAddr::V6(ip) => format!("[{ip}]"),
        ip => ip.to_string(),
    };
    match port {
        HTTPS_PORT => format!("https://{host}/"),
        _ => format!("https://{host}:{port}/"),
    }
}

/// True if the name reaches it: of all loopback addresses it stands for these.
fn is_localhost(ip: IpAddr) -> bool {
    ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST
}

/// Addresses of nobody (RFC 5737, RFC 3849), as far away as any.
const FAR_IPV4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const DISCARD_PORT: u16 = 9;
/// The port a browser takes when none is written.
const HTTPS_PORT: u16 = 443;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_can_be_typed_into_a_browser() {
        for (address, expected) in [
            ("127.0.0.1:8443", "https://localhost:8443/"),
            ("[::1]:8443", "https://localhost:8443/"),
            ("0.0.0.0:443", "https://localhost/"),
            ("[::]:8443", "https://localhost:8443/"),
            ("127.0.0.77:8443", "https://127.0.0.77:8443/"),
            ("192.0.2.1:8443", "https://192.0.2.1:8443/"),
            ("[2001:db8::1]:8443", "https://[2001:db8::1]:8443/"),
        ] {
            assert_eq!(url(address.parse().unwrap()), expected);
        }
    }

    #[test]
    fn other_devices_are_told_addresses_that_the_certificate_is_for() {
        for address in ["0.0.0.0:8443", "[::]:8443"] {
            let address: SocketAddr = address.parse().unwrap();
            let names: Vec<String> =
                site_names(address, true).into_iter().map(|name| name.value).collect();
            // There are as many as the machine has ways out: perhaps none.
            let urls = urls_for_others(address);
            assert_eq!(names.len(), 1 + urls.len());
            for (name, url) in names[1..].iter().zip(&urls) {
                assert!(url.contains(name.as_str()), "{name} {url}");
                let ip: IpAddr = name.parse().unwrap();
                assert!(!ip.is_loopback() && !ip.is_unspecified(), "{name}");
            }
            assert_eq!(site_names(address, false).len(), 1);
        }
        let own: SocketAddr = "192.0.2.1:8443".parse().unwrap();
        assert_eq!(urls_for_others(own), [""; 0], "it is the address already");
    }

    #[test]
    fn a_made_certificate_comes_with_a_way_to_trust_it() {
        let address = ([127, 0, 0, 1], 8443).into();
        let kept = MadeCertificate::KeptIn("/s/kettle.pem".into());
        assert!(
            how_to_trust(&kept, address)
                .contains("curl --cacert /s/kettle.pem https://localhost:8443/\n")
        );
        let made = MadeCertificate::InMemory { reason: "no home".to_owned() };
        let advice = how_to_trust(&made, address);
        assert!(
            advice.contains("(no home)") && advice.contains("-connect localhost:8443 "),
            "{advice}"
        );
        for (address, expected) in [
            ("127.0.0.1:443", "-connect localhost:443 "),
            ("127.0.0.77:8443", "-connect 127.0.0.77:8443 "),
            ("[2001:db8::1]:443", "-connect [2001:db8::1]:443 "),
        ] {
            let advice = how_to_trust(&made, address.parse().unwrap());
            assert!(advice.contains(expected), "{advice}");
        }
    }
}
