//! `kettle serve --domain`: a folder under names of its own, with a certificate that is fetched.

use std::fmt::Write as _;
use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;

use kettle_config::{Config, Diagnostic, Located};
use serde_json::json;

use crate::cli::DomainArguments;

/// The configuration for these names, or what is wrong with them.
///
/// # Errors
/// The mistakes that `kettle check` would find in such a configuration.
pub(super) fn config(
    arguments: &DomainArguments,
    https: Option<SocketAddr>,
    folder: &Path,
) -> Result<Config, Vec<Diagnostic>> {
    // Whatever is checked in a file is checked here, too.
    let mut config = kettle_config::parse(&text(arguments, https), Path::new(""))?;
    for route in config.sites.iter_mut().flat_map(|site| &mut site.routes) {
        // It may have a name that is no text.
        route.root = Some(Located::not_written(folder.to_path_buf()));
    }
    Ok(config)
}

/// The same as a file. JSON's strings are strings there.
fn text(arguments: &DomainArguments, https: Option<SocketAddr>) -> String {
    let names = json!(arguments.domain);
    let contact = arguments.email.iter().map(|it| format!("mailto:{it}")).collect::<Vec<_>>();
    let contact = json!(contact);
    let directory = json!(arguments.acme_directory);
    let accepted = arguments.accept_terms;
    let mut text = format!(
        "[[site]]\nnames = {names}\nacme = {{}}\nroute = [{{ root = \"/\" }}]\n\
         [[acme]]\nname = \"authority\"\ndirectory = {directory}\ncontact = {contact}\n\
         accept_terms = {accepted}\n"
    );
    if let Some(roots) = &arguments.acme_roots {
        let roots = std::path::absolute(roots).unwrap_or_else(|_| roots.clone());
        // A name that is no text is found to be none of a file.
        let _ = writeln!(text, "roots = {}", json!(roots.to_string_lossy()));
    }
    for address in addresses(https, 443) {
        let _ = writeln!(text, "[[listener]]\naddress = \"{address}\"");
    }
    let http = arguments.listen_http.or(https.map(|https| SocketAddr::new(https.ip(), 80)));
    for address in addresses(http, 80) {
        let _ = writeln!(text, "[[listener]]\naddress = \"{address}\"\nkind = \"redirect\"");
    }
    text
}

/// This one, or all of the machine.
fn addresses(wanted: Option<SocketAddr>, port: u16) -> Vec<SocketAddr> {
    if let Some(wanted) = wanted {
        return vec![wanted];
    }
    let any = SocketAddr::from(([0, 0, 0, 0], port));
    // Kernels may be without it.
    let has_ipv6 = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
    let any_ipv6 = has_ipv6.then(|| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    [any].into_iter().chain(any_ipv6).collect()
}

/// Why nothing is asked for yet, if nobody has agreed to the terms.
pub(super) fn refusal(arguments: &DomainArguments) -> Option<String> {
    let terms = match arguments.acme_directory.starts_with("letsencrypt") {
        true => "https://letsencrypt.org/repository/".to_owned(),
        false => format!("`termsOfService` of {}", arguments.acme_directory),
    };
    (!arguments.accept_terms).then(|| {
        format!(
            "a certificate is only asked for by somebody who agrees to the authority's terms: {terms}\n\
             help: read them, and add --accept-terms"
        )
    })
}
