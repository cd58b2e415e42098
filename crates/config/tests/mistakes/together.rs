//! Settings that contradict, repeat or need each other.

/// A configuration at the edge of a rule is right, and what other rules have said already is not said again.
#[test]
fn what_is_allowed_is_not_found() {
    let site = "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n";
    let routes = |hsts: &str| {
        format!(
            "[[site]]\nnames = [\"a\"]\nself_signed = true\n{hsts}[[site.route]]\nroot = \"/srv\"\n"
        )
    };
    let redirect = "[[listener]]\naddress = \"0.0.0.0:80\"\nkind = \"redirect\"\n";
    for snippet in [
        "[limits]\nhot_memory = \"0 B\"\n".to_owned(),
        "[limits]\nhot_memory = \"1 MiB\"\n".to_owned(),
        "[limits]\nhot_memory = \"1 MiB\"\nhot_file = \"1 MiB\"\n".to_owned(),
        "[metrics]\nlisten = \"127.0.0.1:9443\"\n".to_owned(),
        "[metrics]\nlisten = \"0.0.0.0:9443\"\nallow_remote = true\n".to_owned(),
        "[metrics]\nlisten = \"127.0.0.1:9443\"\nallow_remote = true\n".to_owned(),
        "[tls]\nversions = [\"tls1.3\"]\ngroups = [\"x25519mlkem768\"]\n".to_owned(),
        "[tls]\nversions = [\"tls1.2\"]\ngroups = [\"x25519\"]\n".to_owned(),
        "[tls]\ngroups = [\"x25519mlkem768\", \"x25519\"]\n".to_owned(),
        format!("#alone\n{redirect}"),
        format!("#alone\n{redirect}[[site]]\nnames = [\"a\"]\n"),
        format!("#alone\n{redirect}{site}"),
        routes("hsts = { preload = true, include_subdomains = true, max_age = \"365d\" }\n"),
        routes("hsts = { max_age = \"1d\" }\n"),
        routes("hsts = { }\nheaders = { x-other = \"1\" }\n"),
        "[[site]]\nnames = [\"_\"]\nself_signed = true\nroute = [{ root = \"/a\" }]\n".to_owned(),
    ] {
        assert_eq!(crate::shown(&snippet), "nothing", "in\n{snippet}");
    }
}

#[test]
fn what_cannot_be_read_is_not_called_missing() {
    let site = "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n";
    let listener = "[[listener]]\naddress = \"0.0.0.0:443\"\n";
    for snippet in [
        format!("#alone\nlistener = 1\n{site}"),
        format!("#alone\nsite = 1\n{listener}"),
        "[[site]]\nnames = [\"a\"]\nself_signed = true\nroute = 1\n".to_owned(),
        "[[site]]\nnames = [\"a\"]\ncertificate = 1\n[[site.route]]\nroot = \"/srv\"\n".to_owned(),
    ] {
        let shown = crate::shown(&snippet);
        assert_eq!(shown.matches("kettle.toml:").count(), 1, "in\n{snippet}\n{shown}");
    }
}

#[test]
fn a_year_is_not_a_day_less() {
    let hsts = "hsts = { preload = true, include_subdomains = true, max_age = \"364d\" }";
    let shown = crate::shown(&format!(
        "[[site]]\nnames = [\"a\"]\nself_signed = true\n{hsts}\n[[site.route]]\nroot = \"/srv\"\n"
    ));
    assert!(shown.starts_with("kettle.toml:4:20: preload needs a max_age"), "{shown}");
}

#[test]
fn a_target_as_large_as_the_head_is_found() {
    let shown = crate::shown("[limits]\nhead = \"16 KiB\"\ntarget = \"16 KiB\"\n");
    assert!(shown.starts_with("kettle.toml:3:10: `target` must be smaller"), "{shown}");
}

#[test]
fn nobody_is_asked_for_a_certificate_where_tls_only_passes_through() {
    let listeners = "[[listener]]\naddress = \"0.0.0.0:443\"\n\
        [[listener]]\naddress = \"0.0.0.0:444\"\nkind = \"tls\"\nbackend = \"app\"\n\
        certificate = [{ chain = \"s.pem\", key = \"s.key\" }]\n\
        [[listener]]\naddress = \"0.0.0.0:445\"\nkind = \"passthrough\"\nbackend = \"app\"\n";
    let site = "[[site]]\nnames = [\"a\"]\nself_signed = true\nroute = [{ root = \"/srv\" }]\n\
        client_auth = { roots = \"clients.pem\" }\n";
    let backend = "[[backend]]\nname = \"app\"\nserver = [{ address = \"127.0.0.1:80\" }]\n";
    assert_eq!(crate::shown(&format!("{listeners}{site}{backend}")), "nothing");
}

#[test]
fn names_by_regular_expressions_have_bounds_together() {
    let site = |names: &[String]| {
        let names = names.join("', '");
        format!(
            "[[site]]\nnames = ['{names}']\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n"
        )
    };
    let small = |from: usize, to: usize| -> Vec<String> {
        (from..to).map(|number| format!("~^{number}\\.")).collect()
    };
    let two = |of_second: usize| site(&small(0, 500)) + &site(&small(500, of_second));
    assert_eq!(crate::shown(&two(1_000)), "nothing");
    let shown = crate::shown(&two(1_001));
    assert!(shown.contains("against 1001 regular expressions at one listener"), "{shown}");
    assert!(shown.contains("at most 1000 for the sites of a listener"), "{shown}");
    let redirects = "[[listener]]\naddress = \"0.0.0.0:80\"\nkind = \"redirect\"\n";
    let shown = crate::shown(&format!("{redirects}{}{}", crate::LISTENER, two(1_001)));
    assert!(shown.contains("against 1001 regular expressions at one listener"), "{shown}");

    let large = |number: usize| format!("~^{number}[a-z]{{400}}\\.");
    let many = |number: usize| site(&(0..number).map(large).collect::<Vec<_>>());
    assert_eq!(crate::shown(&many(10)), "nothing");
    let shown = crate::shown(&many(100));
    assert!(shown.starts_with("kettle.toml:2:10: the regular expressions of this site"), "{shown}");
}
