//! Guards of routes whose paths expressions, conditions and stores have a part in: each asks what it asks, and of nobody's requests less.

use super::*;

/// A site of these routes, each of which says a word; `closed` are those that let nobody in who asks from here.
fn site(routes: &[(&str, &str)]) -> Kettle {
    let route = |(place, word): &(&str, &str)| {
        let guard = if *word == "closed" { "allow = [\"192.0.2.0/24\"]\n" } else { "" };
        format!(
            "[[site.route]]\n{place}\n{guard}redirect = [{{ to = \"/-{word}\", status = 302 }}]\n"
        )
    };
    let routes: String = routes.iter().map(route).collect();
    Kettle::start(Setup::default().listener("http2 = true").more(&routes))
}

fn assert_said(kettle: &Kettle, said: &[(&str, &str)]) {
    for version in ["--http1.1", "--http2"] {
        for (target, word) in said {
            let words = [version, "--path-as-is", "--output", "/dev/null", "--write-out"];
            let format = "%{http_code} %header{location}";
            let answer = kettle.curl(&[&words[..], &[format]].concat(), target).succeed();
            let expected = match *word {
                "closed" => "403 ".to_owned(),
                word => format!("302 /-{word}"),
            };
            assert_eq!(answer, expected, "{version} {target}");
        }
    }
}

/// The server's own expressions do not take paths from a place that is `first`; the one within it does, and has a guard of its own.
#[test]
fn the_expression_inside_a_first_place_is_guarded_by_itself() {
    let kettle = site(&[
        ("regex = '\\.(php|txt)$'", "server"),
        ("text_prefix = \"/open\"\nfirst = true", "open"),
        ("text_prefix = \"/open\"\nregex = '\\.php$'", "closed"),
        ("text_prefix = \"/shut\"\nfirst = true", "closed"),
        ("text_prefix = \"/shut\"\nregex = '\\.css$'", "style"),
    ]);
    assert_said(
        &kettle,
        &[
            ("/open/a.txt", "open"),
            ("/open/a.php", "closed"),
            ("/open/./x/../a%2ephp", "closed"),
            ("/shut/a.php", "closed"),
            ("//shut//a.txt", "closed"),
            ("/shut/a.css", "style"),
            ("/a.php", "server"),
        ],
    );
}

/// An expression within a place is not asked where a longer one is found, nor does the longer one's guard hold elsewhere.
#[test]
fn the_expression_inside_a_prefix_leaves_its_longer_neighbour_alone() {
    let kettle = site(&[
        ("text_prefix = \"/up\"", "up"),
        ("text_prefix = \"/up\"\nregex = '\\.php$'", "closed"),
        ("text_prefix = \"/up/deep/\"", "deep"),
        ("text_prefix = \"/up/secret\"", "closed"),
    ]);
    assert_said(
        &kettle,
        &[
            ("/up/a", "up"),
            ("/up/a.php", "closed"),
            ("/up/deep/a.php", "deep"),
            ("/up/deep/../a.php", "closed"),
            ("/up/deep", "up"),
            ("/up/secret.php", "closed"),
            ("/up/secret/a", "closed"),
            ("/up/deep/../secret/a", "closed"),
        ],
    );
}

/// Where a condition does not hold, the route of the same place behind it asks for its own guard, and no shorter place answers.
#[test]
fn a_guarded_place_with_conditions_is_guarded_where_they_do_not_hold() {
    let kettle = site(&[
        ("text_prefix = \"/i\"", "all"),
        ("prefix = \"/in\"\nwhen = [{ header = \"x-key\", text = \"1\" }]", "key"),
        ("prefix = \"/in\"", "closed"),
    ]);
    assert_said(&kettle, &[("/in", "closed"), ("/in/a", "closed"), ("/inn", "all"), ("/i", "all")]);
    let words =
        ["--header", "X-Key: 1", "--output", "/dev/null", "--write-out", "%header{location}"];
    assert_eq!(kettle.curl(&words, "/in/a").succeed(), "/-key");
}

/// A client with the cookie is served apart, and neither gets what the other's backend said nor leaves it in the store.
#[test]
fn a_canary_by_cookie_stands_before_a_store() {
    let [stable, canary] = ["stable", "canary"].map(saying);
    let folder = tempfile::tempdir().unwrap();
    let kettle = Kettle::start(
        Setup::default()
            .more("[[site.route]]\nprefix = \"/app\"\nbackend = \"canary\"\n")
            .more("when = [{ cookie = \"canary\", text = \"1\" }]\n")
            .more("[[site.route]]\nprefix = \"/app\"\nbackend = \"stable\"\ncache = { store = \"main\" }\n")
            .more(&backend("stable", "", &[stable.address()]))
            .more(&backend("canary", "", &[canary.address()]))
            .more(&format!("[[cache]]\nname = \"main\"\ndirectory = \"{}\"\n", folder.path().display())),
    );
    let ask = |words: &[&str]| {
        let said = ["--write-out", " %header{cache-status}"];
        kettle.curl(&[words, &said].concat(), "/app/x").succeed()
    };
    let has_it = ["--cookie", "canary=1"];
    assert_eq!(ask(&has_it), "canary ");
    wait_until("the store", || ask(&[]).starts_with("stable kettle; hit"));
    assert_eq!(ask(&has_it), "canary ");
    assert!(ask(&["--cookie", "canary=0"]).starts_with("stable "));
    assert!(ask(&[]).starts_with("stable kettle; hit"));
}
