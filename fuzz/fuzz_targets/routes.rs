//! The route that is found for a path is that of the plain order, whatever the routes of a site.
#![no_main]

use kettle_config::{Expression, Route, RouteIndex, find_plainly};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    let mut lines = data.lines();
    let path = lines.next().filter(|path| path.starts_with('/')).unwrap_or("/");
    let mut routes: Vec<Route> = Vec::new();
    for line in lines.take(32) {
        let mut words = line.split(' ');
        let kind = words.next().unwrap_or_default();
        let text = Some(words.next().unwrap_or_default().to_owned());
        let regex = words.next().and_then(|regex| Expression::new(regex).ok());
        let route = Route { first: words.next().is_some(), ..Route::default() };
        routes.push(match (kind, regex) {
            ("=", _) => Route { exact: text, ..route },
            ("~", Some(regex)) => Route { regex: Some(regex), ..route },
            ("^", regex) => Route { text_prefix: text, regex, ..route },
            (_, regex) => Route { prefix: text, regex, ..route },
        });
    }
    let Ok(index) = RouteIndex::of(&routes) else { return };
    // One that is not a power of two, so that each pattern of routes is passed over.
    for passed_over in [usize::MAX, 0, 1, 3] {
        let holds = |number: usize| number % 5 != passed_over;
        assert_eq!(
            index.find(path, holds),
            find_plainly(&routes, path, holds),
            "{path}: {routes:?}"
        );
    }
});
