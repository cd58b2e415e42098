use std::path::Path;

use proptest::prelude::*;

use super::*;

/// A route with these redirects, each to its number.
fn route(patterns: &[String]) -> Route {
    let rules = (0..).zip(patterns).map(|(number, from): (usize, _)| {
        let from = if from.is_empty() { String::new() } else { format!("from = \"{from}\", ") };
        format!("{{ {from}to = \"https://a/{number}\" }}")
    });
    let rules: Vec<String> = rules.collect();
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:1\"\nkind = \"https\"\n[[site]]\nnames = [\"_\"]\nself_signed = true\n\
         [[site.route]]\nroot = \"/\"\nredirect = [\n{}\n]",
        rules.join(",\n")
    );
    let config = kettle_config::parse(&text, Path::new("kettle.toml")).unwrap();
    config.sites[0].routes[0].clone()
}

fn pattern() -> impl Strategy<Value = String> {
    "(/[/aé?*]{0,6})?".prop_filter("no pattern", |it| !it.contains("***") && !it.contains("//"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against the plain list.
    #[test]
    fn the_first_redirect_in_the_order_of_the_file_decides(
        patterns in prop::collection::vec(pattern(), 1..40),
        paths in prop::collection::vec("/[/aé]{0,7}", 20),
    ) {
        let route = route(&patterns);
        let rules = Rules::of(&route.redirects, Redirect::choice);
        for path in paths {
            let expected = route.redirects.iter().find(|rule| rule.choice().fits(&path));
            prop_assert_eq!(rules.first(&path, |_| true), expected, "{}", path);
        }
    }
}
