use super::*;

fn change(place: (&str, &str), strips: bool, added: Option<&str>) -> Option<PrefixChange> {
    let text = Some(place.1.to_owned());
    let mut route = Route { strip_prefix: strips, ..Route::default() };
    route.add_prefix = added.map(str::to_owned);
    match place.0 {
        "prefix" => route.prefix = text,
        "text_prefix" => route.text_prefix = text,
        _ => route.exact = text,
    }
    PrefixChange::of(&route)
}

#[test]
fn what_is_stripped_and_added_comes_back() {
    for (place, strips, added, path, there) in [
        (("prefix", "/app"), true, None, "/app/x", "/x"),
        (("prefix", "/app/"), true, None, "/app", "/"),
        (("prefix", "/app"), true, Some("/v1"), "/app/x", "/v1/x"),
        (("prefix", "/app"), true, Some("/v1/"), "/app/x", "/v1/x"),
        (("prefix", "/app"), false, Some("/v1"), "/app/x", "/v1/app/x"),
        (("text_prefix", "/app/"), true, None, "/app/x", "/x"),
        (("text_prefix", "/app/"), true, Some("/"), "/app/x", "/x"),
        (("text_prefix", "/app"), true, Some("/"), "/apple", "/le"),
        (("text_prefix", "/app"), true, Some("/v"), "/apple", "/vle"),
        (("exact", "/app"), true, Some("/one"), "/app", "/one"),
    ] {
        let change = change(place, strips, added).unwrap();
        assert_eq!(change.there(path).as_deref(), Some(there), "{place:?} {added:?}");
        let back = change.back(there).unwrap();
        assert_eq!(back.trim_end_matches('/'), path, "{place:?} {added:?}");
    }
    let static_files = change(("text_prefix", "/static"), true, Some("/files/")).unwrap();
    for path in ["/static../x", "/static..;a/x", "/static./x", "/static..%2Fx"] {
        assert_eq!(static_files.there(path), None, "{path}");
    }
    assert!(change(("prefix", "/app"), false, None).is_none());
    assert!(change(("prefix", "/"), true, None).is_none());
}

#[test]
fn only_what_a_server_says_of_itself_is_turned_back() {
    let own = BackendHost::Fixed("app:3000".to_owned());
    let change = change(("prefix", "/app"), true, Some("/v1"));
    for (location, host, turned, plain) in [
        ("http://app:3000/v1/x?y", Some(&own), Some("/app/x?y"), Some("/v1/x?y")),
        ("https://APP:3000/v1/x", Some(&own), Some("/app/x"), Some("/v1/x")),
        ("http://app:3000/other", Some(&own), None, Some("/other")),
        ("http://app:3000//evil.test/", Some(&own), None, Some("/evil.test/")),
        ("http://app:3000/\\evil.test/", Some(&own), None, Some("/evil.test/")),
        ("http://app:3000/\t/evil.test/", Some(&own), None, Some("/evil.test/")),
        (
            "http://app:3000/v1/\\evil.test/",
            Some(&own),
            Some("/app/\\evil.test/"),
            Some("/v1/\\evil.test/"),
        ),
        ("http://app:30001/v1/", Some(&own), None, None),
        ("http://app:3000.evil.test/v1/", Some(&own), None, None),
        ("http://app:3000", Some(&own), None, None),
        ("/v1/x", Some(&own), None, None),
        ("http://app:3000/v1/x", Some(&BackendHost::Asked), None, None),
        ("http://app:3000/v1/x", None, None, None),
    ] {
        let back = turned_back(location.as_bytes(), host, change.as_ref());
        assert_eq!(back.as_deref(), turned, "{location}");
        assert_eq!(turned_back(location.as_bytes(), host, None).as_deref(), plain, "{location}");
    }
}

#[test]
fn what_is_left_of_a_path_names_no_host() {
    let own = BackendHost::Fixed("app:3000".to_owned());
    let change = change(("prefix", "/"), true, Some("/v1"));
    for location in ["/v1\\evil.test", "/v1/\\evil.test", "/v1\t/evil.test", "/v1//evil.test"] {
        let location = format!("http://app:3000{location}");
        let back = turned_back(location.as_bytes(), Some(&own), change.as_ref());
        assert_eq!(back.as_deref(), Some("/evil.test"), "{location}");
    }
}

/// Servers are never sent such a path, so it is no way back.
#[test]
fn what_only_begins_alike_does_not_come_back() {
    for (place, there, back) in [
        (("prefix", "/api"), "/v1", Some("/api")),
        (("prefix", "/api"), "/v1/x", Some("/api/x")),
        (("prefix", "/api"), "/v1?x", Some("/api?x")),
        (("prefix", "/api"), "/v1evil", None),
        (("text_prefix", "/api"), "/v1evil", Some("/apievil")),
    ] {
        let change = change(place, true, Some("/v1")).unwrap();
        assert_eq!(change.back(there).as_deref(), back, "{there}");
    }
}
