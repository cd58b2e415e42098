use super::*;

fn candidates(tries: &[&str], regex: Option<&str>, path: &str) -> Vec<String> {
    let route = Route {
        tries: tries.iter().map(|it| (*it).to_owned()).collect(),
        regex: regex.map(|it| Expression::new(it).unwrap()),
        ..Route::default()
    };
    let candidates = Tries::of(&route).unwrap().candidates(path, path);
    candidates.into_iter().map(|candidate| candidate.path).collect()
}

#[test]
fn each_is_filled_in_in_order_and_what_is_no_file_is_left_out() {
    let usual = &["{path}", "{path}.html", "{path}/", "/index.php"][..];
    for (tries, regex, path, expected) in [
        (usual, None, "/a", &["/a", "/a.html", "/a/", "/index.php"][..]),
        // A folder is no file.
        (usual, None, "/a/", &["/a/.html", "/a/", "/index.php"]),
        (usual, None, "/", &["/.html", "/", "/index.php"]),
        (&["/{1}/x"], Some("^/u/(.*)$"), "/u/a/b", &["/a/b/x"]),
        (&["/{name}/x"], Some("^/u/(?<name>.*)$"), "/u/", &["/x"]),
        // Nothing climbs, however its parts come together.
        (&["/{1}.{2}/x"], Some("^/(.*)-(.*)$"), "/.-", &[]),
        (&["/a{1}"], Some("^/(.*)$"), "/b", &["/ab"]),
    ] {
        assert_eq!(candidates(tries, regex, path), expected, "{path}");
    }
    assert!(Tries::of(&Route::default()).is_none());
}
