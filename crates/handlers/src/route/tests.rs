use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use super::*;
use kettle_config::{Certificate, ClientAuth, ClientAuthMode, Located, Site as SiteConfig};

fn site(names: &[&str], prefixes: &[&str], folder: &Path) -> SiteConfig {
    let root = || Some(Located::not_written(folder.to_owned()));
    let route = |prefix: &&str| kettle_config::Route {
        prefix: Some((*prefix).to_owned()),
        root: root(),
        ..kettle_config::Route::default()
    };
    SiteConfig {
        names: names.iter().map(|name| Located::not_written((*name).to_owned())).collect(),
        routes: prefixes.iter().map(route).collect(),
        self_signed: true,
        ..SiteConfig::default()
    }
}

fn with_certificate(mut site: SiteConfig, chain: &str) -> SiteConfig {
    let path = || Located::not_written(PathBuf::from(chain));
    site.self_signed = false;
    site.certificates = vec![Certificate { chain: path(), key: path(), ocsp: None }];
    site
}

fn config(sites: Vec<SiteConfig>) -> Config {
    let mut config = Config::default();
    config.sites = sites;
    config
}

fn build(sites: Vec<SiteConfig>) -> Router {
    Router::build(&config(sites), &Default::default(), &Default::default(), None).unwrap()
}

/// The route that answers for a path.
fn route_of<'s>(site: &'s Site, path: &str) -> Option<&'s Route> {
    let head = crate::respond::tests::stage::head("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    site.route(path, Asked::by_head(&head))
}

/// The number of the site that answers.
fn number(router: &Router, host: Option<&str>, server_name: Option<&str>) -> Option<usize> {
    let presented = Presented { server_name, is_verified: true };
    let site = router.site(host.map(str::as_bytes), presented)?;
    router.sites.iter().position(|other| std::ptr::eq(other, site))
}

fn files(route: Option<&Route>) -> &FileRoute {
    let Some(Route { handler: Handler::Files(files), .. }) = route else { panic!("no files") };
    files
}

#[test]
fn addresses_are_asked_for_as_urls_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let router = build(vec![
        site(&["_"], &["/"], folder.path()),
        site(&["2001:db8::1", "192.0.2.1"], &["/"], folder.path()),
    ]);
    for (host, expected) in [
        ("[2001:db8::1]", 1),
        ("[2001:DB8:0:0::1]", 1),
        ("192.0.2.1", 1),
        ("2001:db8::1", 0),
        ("[2001:db8::2]", 0),
        ("[", 0),
        ("[]", 0),
    ] {
        assert_eq!(number(&router, Some(host), None), Some(expected), "{host}");
    }
}

#[test]
fn without_a_default_other_names_have_no_site() {
    let folder = tempfile::tempdir().unwrap();
    let router = build(vec![site(&["www.example.org"], &["/"], folder.path())]);
    assert_eq!(number(&router, Some("example.net"), None), None);
    assert_eq!(number(&router, None, None), None);
    assert_eq!(number(&router, None, Some("www.example.org")), Some(0));
    let long = format!("{}.example.org", "x".repeat(300));
    assert_eq!(number(&router, Some(&long), None), None);
}

#[test]
fn a_connection_for_an_unknown_name_is_one_of_the_site_whose_certificate_it_was_shown() {
    let folder = tempfile::tempdir().unwrap();
    let asking = |name| {
        let site = with_certificate(site(&[name], &["/"], folder.path()), "a.pem");
        asking(site, "roots.pem", ClientAuthMode::Optional)
    };
    let sites = || {
        vec![
            with_certificate(site(&["a.example"], &["/"], folder.path()), "a.pem"),
            with_certificate(site(&["b.example"], &["/"], folder.path()), "b.pem"),
            with_certificate(site(&["c.example"], &["/"], folder.path()), "a.pem"),
            asking("d.example"),
        ]
    };
    let router = build(sites());
    let unknown = Some("unknown.example");
    assert_eq!(number(&router, Some("a.example"), unknown), Some(0));
    assert_eq!(number(&router, Some("c.example"), unknown), Some(2), "by the same certificate");
    assert_eq!(number(&router, None, unknown), Some(0));
    assert_eq!(number(&router, None, Some("b.example")), Some(1));
    for refused in ["b.example", "d.example", "unknown.example"] {
        assert_eq!(number(&router, Some(refused), unknown), None, "{refused}");
    }
    // The default's certificate is shown where there is one.
    let mut sites = sites();
    sites[1].default = true;
    let router = build(sites);
    assert_eq!(number(&router, Some("b.example"), unknown), Some(1));
    assert_eq!(number(&router, unknown, unknown), Some(1));
    for refused in ["a.example", "d.example"] {
        assert_eq!(number(&router, Some(refused), unknown), None, "{refused}");
    }
    // The first that asks clients for certificates is shown, and its client was not asked.
    let router = build(vec![asking("d.example")]);
    assert_eq!(number(&router, Some("d.example"), unknown), None);
    assert_eq!(number(&router, None, unknown), None);
}

#[test]
fn copies_of_one_file_make_sites_alike_and_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name, chain: &str, roots: &str| {
        let site = with_certificate(site(&[name], &["/"], folder.path()), chain);
        if roots.is_empty() { site } else { asking(site, roots, ClientAuthMode::Required) }
    };
    let router = build(vec![
        of("a.example", "a.pem", ""),
        of("b.example", "copy-of-a.pem", ""),
        of("c.example", "a.pem", "one.pem"),
        of("d.example", "a.pem", "copy-of-one.pem"),
        of("e.example", "a.pem", "two.pem"),
    ]);
    assert_eq!(number(&router, Some("b.example"), Some("a.example")), None);
    let alike = AlikeSites {
        certificates: vec![Some(0); 5],
        client_auth: vec![Some(2), None, Some(2), Some(2), Some(4)],
    };
    let router = router.with_alike(&alike);
    for (asked, shown, expected) in [
        ("b", "a", Some(1)),
        ("d", "c", Some(3)),
        ("c", "d", Some(2)),
        ("c", "a", None),
        ("e", "c", None),
        ("a", "c", Some(0)),
    ] {
        let asked = format!("{asked}.example");
        let shown = format!("{shown}.example");
        assert_eq!(number(&router, Some(&asked), Some(&shown)), expected, "{asked} {shown}");
    }
}

#[test]
fn a_generated_certificate_stands_for_all_sites_that_have_one() {
    let folder = tempfile::tempdir().unwrap();
    let generated = |name| SiteConfig { self_signed: true, ..site(&[name], &["/"], folder.path()) };
    let router = build(vec![
        generated("a.example"),
        with_certificate(site(&["own.example"], &["/"], folder.path()), "a.pem"),
        generated("b.example"),
        SiteConfig { self_signed: false, ..site(&["none.example"], &["/"], folder.path()) },
    ]);
    assert_eq!(number(&router, Some("b.example"), Some("a.example")), Some(2), "one for both");
    for (asked, shown) in [("own", "a"), ("a", "own"), ("none", "a")] {
        let asked = format!("{asked}.example");
        let shown = format!("{shown}.example");
        assert_eq!(number(&router, Some(&asked), Some(&shown)), None, "{asked} {shown}");
    }
    let shown_first = number(&router, Some("a.example"), Some("none.example"));
    assert_eq!(shown_first, Some(0), "as for a name that no site has");
}

#[test]
fn the_longest_prefix_of_whole_segments_decides() {
    let folder = tempfile::tempdir().unwrap();
    let prefixes = ["/", "/img", "/img/large/", "/api/"];
    let router = build(vec![site(&["_"], &prefixes, folder.path())]);
    let site = router.site(None, Presented::default()).unwrap();
    for (path, prefix, below) in [
        ("/", "", "/"),
        ("/a/b", "", "/a/b"),
        ("/img", "/img", ""),
        ("/img/", "/img", "/"),
        ("/img/a.png", "/img", "/a.png"),
        ("/images/a.png", "", "/images/a.png"),
        ("/img/large/a.png", "/img/large", "/a.png"),
        ("/img/largest", "/img", "/largest"),
        ("/api", "/api", ""),
    ] {
        let route = files(route_of(site, path));
        assert_eq!((route.prefix.as_str(), route.below(path)), (prefix, Some(below)), "{path}");
    }
}

#[test]
fn every_root_that_cannot_be_opened_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let sites =
        vec![site(&["a.example"], &["/"], &missing), site(&["b.example"], &["/", "/x"], &missing)];
    let diagnostics =
        Router::build(&config(sites), &Default::default(), &Default::default(), None).unwrap_err();
    assert_eq!(diagnostics.len(), 3);
    assert!(diagnostics[0].message.contains("cannot open"), "{}", diagnostics[0].message);
    assert!(diagnostics[0].offending.ends_with("missing"), "{}", diagnostics[0].offending);
}

#[test]
fn routes_built_again_have_other_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let number_of = || {
        let router = build(vec![site(&["_"], &["/"], folder.path())]);
        files(route_of(router.site(None, Presented::default()).unwrap(), "/")).number
    };
    assert_ne!(number_of(), number_of());
}

fn asking(mut site: SiteConfig, roots: &str, mode: ClientAuthMode) -> SiteConfig {
    let roots = Located::not_written(PathBuf::from(roots));
    site.client_auth = Some(ClientAuth { mode, roots, crl: None, depth: None, pinned: false });
    site
}

#[test]
fn site_that_asks_for_certificates_takes_only_connections_that_were_asked_for_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let named = |name| with_certificate(site(&[name], &["/"], folder.path()), "shared.pem");
    let required = ClientAuthMode::Required;
    let optional = ClientAuthMode::Optional;
    let sites = || {
        vec![
            named("public.example"),
            asking(named("one.example"), "one.pem", required),
            asking(named("other.example"), "one.pem", required),
            asking(named("two.example"), "two.pem", required),
            asking(named("lax.example"), "one.pem", optional),
        ]
    };
    let router = build(sites());
    for (host, server_name, expected) in [
        ("one.example", Some("one.example"), Some(1)),
        ("one.example", Some("other.example"), Some(1)),
        ("one.example", Some("two.example"), None),
        ("one.example", Some("lax.example"), None),
        ("one.example", Some("public.example"), None),
        ("one.example", Some("nobody.example"), None),
        ("one.example", None, None),
        ("lax.example", None, None),
        ("public.example", Some("one.example"), Some(0)),
        ("public.example", None, Some(0)),
    ] {
        assert_eq!(number(&router, Some(host), server_name), expected, "{host} {server_name:?}");
    }
    let unverified = |name: &'static str| {
        let presented = Presented { server_name: Some(name), is_verified: false };
        router.site(Some(name.as_bytes()), presented)
    };
    assert!(unverified("one.example").is_none(), "whatever let this connection in");
    assert!(unverified("lax.example").is_some() && unverified("public.example").is_some());

    // Clients without a name are asked as those of the default site are.
    let mut with_default = sites();
    with_default[1].default = true;
    let router = build(with_default);
    assert_eq!(number(&router, Some("one.example"), None), Some(1));
    assert_eq!(number(&router, Some("one.example"), Some("nobody.example")), Some(1));
    assert_eq!(number(&router, Some("two.example"), None), None);
}

#[test]
fn ten_thousand_sites_are_not_each_compared_with_all_before() {
    struct Counted<'c>(usize, &'c Cell<usize>);
    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.update(|compared| compared + 1);
            self.0 == other.0
        }
    }
    impl Eq for Counted<'_> {}
    impl Hash for Counted<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }
    let compared = Cell::new(0);
    let keys = |number: usize| (number % 3 != 2).then_some(Counted(number % 7_000, &compared));
    let first = first_alike((0..10_000).map(keys));
    assert_eq!((first[0], first[2], first[6_999]), (Some(0), None, Some(6_999)));
    // The second has no key, so the first with that of 7,002 is this one itself.
    assert_eq!((first[7_000], first[7_002]), (Some(0), Some(7_002)));
    assert!(compared.get() < 10_000, "{compared:?}");
}
