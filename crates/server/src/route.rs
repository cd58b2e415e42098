//! Which site and which route answer a request.
//!
//! Built once from a valid configuration and then only read, by all workers. Opening the roots is
//! part of building, so that a missing folder is found before anything is swapped.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use kettle_config::{Config, Finding, PathChoice};
use rustix::io::Errno;

use crate::files::rules::Rules;
use crate::head::ExtraLines;

/// All sites of a configuration.
#[derive(Debug)]
pub struct Router {
    sites: Vec<Site>,
    /// Site numbers by whole name, in lower case.
    exact: HashMap<Box<str>, usize>,
    /// Site numbers by what follows the star of `*.example.org`, in lower case.
    below: HashMap<Box<str>, usize>,
    default: Option<usize>,
}

/// A site.
#[derive(Debug)]
pub struct Site {
    /// The `strict-transport-security` line, with its CR LF.
    pub hsts_line: Option<Vec<u8>>,
    /// Where its responses are encrypted, if not where the listener says.
    pub path: Option<PathChoice>,
    /// The operator's headers for responses no route gives.
    pub extra: ExtraLines,
    /// Files sent as the body of error responses.
    pub error_pages: BTreeMap<u16, PathBuf>,
    /// Longest prefix first.
    routes: Vec<Arc<Rules>>,
    /// Sites with the same number show the same certificates.
    certificates: usize,
}

impl Router {
    /// Opens all roots. Findings name every one that cannot be opened.
    pub fn build(config: &Config) -> Result<Self, Vec<Finding>> {
        let mut router = Self {
            sites: Vec::with_capacity(config.sites.len()),
            exact: HashMap::new(),
            below: HashMap::new(),
            default: None,
        };
        let mut findings = Vec::new();
        for (number, site) in config.sites.iter().enumerate() {
            for name in &site.names {
                let name = name.value.trim_end_matches('.').to_ascii_lowercase();
                if name == ANY_NAME {
                    router.default = Some(number);
                } else if let Some(below) = name.strip_prefix('*') {
                    router.below.entry(below.into()).or_insert(number);
                } else {
                    router.exact.entry(name.into()).or_insert(number);
                }
            }
            if site.default {
                router.default = Some(number);
            }
            let chains = |site: &kettle_config::Site| -> Vec<PathBuf> {
                site.certificates
                    .iter()
                    .map(|certificate| certificate.chain.value.clone())
                    .collect()
            };
            let own = chains(site);
            let same =
                config.sites.iter().position(|other| !own.is_empty() && chains(other) == own);
            let routes = build_routes(config, site, &mut findings);
            router.sites.push(Site {
                path: site.path,
                hsts_line: site.hsts.as_ref().map(|hsts| {
                    format!("strict-transport-security: {}\r\n", hsts.header_value()).into_bytes()
                }),
                extra: ExtraLines::new(&site.headers, &[]),
                error_pages: site
                    .error_pages
                    .iter()
                    .map(|(status, path)| (*status, path.value.clone()))
                    .collect(),
                routes,
                certificates: same.unwrap_or(number),
            });
        }
        if findings.is_empty() { Ok(router) } else { Err(findings) }
    }

    /// The site for a request, by the name it asks for and the name its connection was made with.
    ///
    /// A request without a name (HTTP/1.0) goes to the site of the connection. A connection
    /// without a name (no SNI) may ask for any site. `None` if no site has the name, or if one has
    /// it that the connection's certificate does not stand for: 421 (RFC 9110 §15.5.20).
    #[must_use]
    pub fn site(&self, host: Option<&str>, server_name: Option<&str>) -> Option<&Site> {
        let number = self.number_of(host.or(server_name))?;
        let site = &self.sites[number];
        if let (Some(asked), Some(server_name)) = (host, server_name)
            && !asked.eq_ignore_ascii_case(server_name)
        {
            let shown =
                self.number_of(Some(server_name)).map(|shown| self.sites[shown].certificates);
            if shown != Some(site.certificates) {
                return None;
            }
        }
        Some(site)
    }

    /// Exact name, then one level below a star, then the default.
    fn number_of(&self, name: Option<&str>) -> Option<usize> {
        let Some(name) = name else { return self.default };
        let name = name.strip_suffix('.').unwrap_or(name);
        let mut lower = [0; NAME_BYTES_MAX];
        let Some(lower) = lower.get_mut(..name.len()) else { return self.default };
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        let Ok(name) = std::str::from_utf8(lower) else { return self.default };
        let below = || name.find('.').and_then(|dot| self.below.get(&name[dot..]));
        self.exact.get(name).or_else(below).copied().or(self.default)
    }
}

impl Site {
    /// The route with the longest prefix of this path, and the path below it.
    ///
    /// What is below begins with a slash, or is empty when the path is the prefix itself.
    #[must_use]
    pub fn route<'p>(&self, path: &'p str) -> Option<(&Arc<Rules>, &'p str)> {
        self.routes.iter().find_map(|route| {
            let below = path.strip_prefix(route.prefix.as_str())?;
            (below.is_empty() || below.starts_with('/')).then_some((route, below))
        })
    }
}

/// The rules of a site's routes, longest prefix first.
fn build_routes(
    config: &Config,
    site: &kettle_config::Site,
    findings: &mut Vec<Finding>,
) -> Vec<Arc<Rules>> {
    let mut routes = Vec::with_capacity(site.routes.len());
    for route in &site.routes {
        match Rules::open(site, route) {
            Ok(rules) => routes.push(Arc::new(rules)),
            Err(error) => findings.push(root_finding(config, route, error)),
        }
    }
    // Stable: of two routes with the same prefix the first stays first.
    routes.sort_by_key(|route| std::cmp::Reverse(route.prefix.len()));
    routes
}

fn root_finding(config: &Config, route: &kettle_config::Route, error: Errno) -> Finding {
    let path = route.root.value.display().to_string();
    let (message, instead) = match error {
        // Containers with an old seccomp profile answer EPERM to calls they do not know.
        Errno::NOSYS | Errno::PERM => (
            "files cannot be opened safely here: openat2 is missing".to_owned(),
            Some("run Linux 5.6 or later, in a container that allows openat2".to_owned()),
        ),
        error => (format!("cannot open {path}: {error}"), None),
    };
    config.finding(route.root.at, &path, message, instead)
}

/// The name that stands for all others.
const ANY_NAME: &str = "_";
/// DNS names have at most 253 characters; longer ones belong to no site.
const NAME_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests;
