use proptest::prelude::*;

use super::*;
use crate::setting::Expression;

fn route(place: (&str, &str), regex: Option<&str>, first: bool) -> Route {
    let text = Some(place.1.to_owned());
    let regex = regex.map(|it| Expression::new(it).unwrap());
    let route = Route { regex, first, ..Route::default() };
    match place.0 {
        "prefix" => Route { prefix: text, ..route },
        "text_prefix" => Route { text_prefix: text, ..route },
        "exact" => Route { exact: text, ..route },
        _ => route,
    }
}

fn find(routes: &[Route], path: &str) -> Option<usize> {
    RouteIndex::of(routes).unwrap().find(path, |_| true)
}

#[test]
fn the_order_is_nginx_s() {
    let routes = [
        route(("prefix", "/"), None, false),
        route(("", ""), Some(r"\.php$"), false),
        route(("text_prefix", "/static"), None, true),
        route(("text_prefix", "/up"), None, false),
        route(("text_prefix", "/up"), Some(r"\.php$"), false),
        route(("exact", "/up/a.php"), None, false),
        route(("prefix", "/up/deep"), None, false),
        route(("", ""), Some("^/up/b"), false),
    ];
    for (path, number) in [
        ("/", 0),
        ("/a.php", 1),
        // `first`, and whatever way it goes on.
        ("/static/a.php", 2),
        ("/statically/a.php", 2),
        ("/upload", 3),
        // The expression of the place comes before that of the site.
        ("/up/x.php", 4),
        ("/up/a.php", 5),
        // That of a place which is not the longest is not asked.
        ("/up/deep/a.php", 1),
        ("/up/deep", 6),
        ("/up/deeper", 3),
        ("/up/b.php", 4),
        ("/up/b", 7),
    ] {
        assert_eq!(find(&routes, path), Some(number), "{path}");
    }
}

#[test]
fn what_does_not_hold_is_passed_over() {
    let routes = [
        route(("exact", "/a"), None, false),
        route(("prefix", "/a"), None, true),
        route(("prefix", "/a"), None, false),
        route(("prefix", "/a"), Some("a$"), false),
        route(("", ""), Some("^/a"), false),
        route(("prefix", "/"), None, false),
    ];
    let index = RouteIndex::of(&routes).unwrap();
    for (holding, number) in [
        (&[0, 1, 2, 3, 4, 5][..], Some(0)),
        (&[1, 2, 3, 4, 5], Some(3)),
        (&[1, 2, 4, 5], Some(1)),
        // Of one place each route says for itself that it is first.
        (&[2, 4, 5], Some(4)),
        // Without a route of the place its expression is not asked.
        (&[3, 5], Some(5)),
        (&[4], Some(4)),
        (&[2], Some(2)),
        (&[], None),
    ] {
        assert_eq!(index.find("/a", |it| holding.contains(&it)), number, "{holding:?}");
    }
}

#[test]
fn of_two_that_are_as_long_the_one_of_whole_segments_answers() {
    let routes = [route(("text_prefix", "/a"), None, false), route(("prefix", "/a/"), None, false)];
    assert_eq!(find(&routes, "/a/b"), Some(1));
    assert_eq!(find(&routes, "/ab"), Some(0));
}

proptest! {
    #[test]
    fn the_index_finds_what_the_plain_order_finds(
        places in prop::collection::vec(
            (0..4_usize, "(/[ab]{0,2}){1,3}", prop::option::of(0..4_usize), any::<bool>()), 0..24),
        path in "(/[ab]{0,2}){1,4}",
        hidden in any::<u32>(),
    ) {
        let expressions = ["a$", "^/a", "b/", "(a|b)b"];
        let routes: Vec<Route> = places.iter().map(|(kind, text, regex, first)| {
            let kind = ["prefix", "text_prefix", "exact", ""][*kind];
            // An expression is beside no exact path.
            let regex = regex.filter(|_| kind != "exact").or((kind.is_empty()).then_some(0));
            route((kind, text), regex.map(|it| expressions[it]), *first)
        }).collect();
        let holds = |number: usize| hidden >> (number % 32) & 1 == 0;
        let index = RouteIndex::of(&routes).unwrap();
        prop_assert_eq!(index.find(&path, holds), find_plainly(&routes, &path, holds));
    }
}
