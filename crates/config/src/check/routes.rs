//! Routes of a site: what they say of paths, and of pages of other origins.

use super::{answers, conditions, crowds, expressions, places};
use crate::diagnostic::Help;
use crate::model::{Expression, PathChoice, PathPattern, Place, Rewrite, Route, Site, Template};
use crate::read::Reader;

const KEPT_BY_PATH: &str =
    "responses of this route are kept by their paths, and this one may be another route's";

/// Records every mistake of the routes of a site, and of what is asked before them.
pub(super) fn check(index: usize, site: &Site, reader: &mut Reader<'_>) {
    expressions::check_site(index, site, reader);
    crowds::check(index, site, reader);
    places::check(index, site, reader);
    for (number, before) in site.before.iter().enumerate() {
        let trail = format!("site.{index}.before.{number}");
        conditions::check(&trail, &before.when, before.regex.as_ref(), reader);
        let rules = Rules::of(&before.redirects, &before.rewrites);
        check_rules(&trail, before.regex.as_ref(), &rules, reader);
        check_stay(
            &trail,
            &before.rewrites,
            "no route is found yet that a path could stay in",
            reader,
        );
        if let Some(respond) = &before.respond {
            let own = (before.regex.as_ref(), false);
            answers::check(&format!("{trail}.respond"), respond, own, reader);
        }
        let has_none = before.respond.is_none() && rules.0.is_empty();
        if let Some(place) = reader.place(&trail).filter(|_| has_none && !reader.is_partial) {
            let message = "[[site.before]] needs `respond`, `redirect` or `rewrite`".to_owned();
            reader.report_at(&place, message, Help::write("respond = { status = 403 }"));
        }
    }
    for (number, route) in site.routes.iter().enumerate() {
        let trail = format!("site.{index}.route.{number}");
        conditions::check(&trail, &route.when, route.regex.as_ref(), reader);
        check_answer(&trail, route, reader);
        check_paths(&trail, route, reader);
        let rules = Rules::of(&route.redirects, &route.rewrites);
        check_rules(&trail, route.regex.as_ref(), &rules, reader);
        check_circles(&trail, route, reader);
        if route.cache.is_some() {
            check_stay(&trail, &route.rewrites, KEPT_BY_PATH, reader);
        }
        check_cors(&trail, site, route, reader);
    }
}

/// A route has files, a backend or an answer, or sends clients elsewhere.
fn check_answer(trail: &str, route: &Route, reader: &mut Reader<'_>) {
    let is_written = |name: &str| reader.is_written(&format!("{trail}.{name}"));
    let answers = ["root", "backend", "respond"].map(is_written);
    if !reader.is_partial
        && answers == [false; 3]
        && !["redirect", "rewrite", "deny"].into_iter().any(is_written)
        && let Some(place) = reader.place(trail)
    {
        let message = "[[site.route]] needs the setting `root`, or `backend`".to_owned();
        reader.report_at(&place, message, Help::write("root = \"/path/to/it\""));
    }
    let [has_root, has_backend, has_answer] = answers;
    if has_answer
        && (has_root || has_backend)
        && let Some(place) = reader.place(&format!("{trail}.respond"))
    {
        let message = "the route has an answer, and files or a backend as well".to_owned();
        let help = "remove one of both, or write a second route with `when`";
        reader.report_at(&place, message, Help::act(help));
    }
    if let Some(respond) = &route.respond {
        let own = (route.regex.as_ref(), true);
        answers::check(&format!("{trail}.respond"), respond, own, reader);
    }
}

/// A path to try has words that stand for something, and a prefix to strip is there.
fn check_paths(trail: &str, route: &Route, reader: &mut Reader<'_>) {
    for (number, text) in route.tries.iter().enumerate() {
        let setting = format!("{trail}.try.{number}");
        conditions::check_tried(&setting, text, route.regex.as_ref(), reader);
    }
    // Of servers' paths none is taken off beside an expression.
    let is_of_files = route.root.is_some() && (route.backend.is_none() || route.fastcgi.is_some());
    let is_stripped = match route.place() {
        _ if route.regex.is_some() && !is_of_files => false,
        Some(Place::TextPrefix(text)) if route.regex.is_some() => text.ends_with('/'),
        Some(Place::Exact(_)) if route.regex.is_some() => false,
        Some(Place::TextPrefix(text)) => route.backend.is_some() || text.ends_with('/'),
        Some(Place::Prefix(_)) => true,
        Some(Place::Exact(_)) => route.backend.is_some(),
        None => false,
    };
    if route.strip_prefix
        && !is_stripped
        && let Some(place) = reader.place(&format!("{trail}.strip_prefix"))
    {
        let message = "only whole segments can be taken off: those of `prefix`, or of a `text_prefix` that ends with a slash".to_owned();
        reader.report_at(&place, message, Help::act("remove it, or write such a place"));
    }
}

/// Redirects and rewrites, each with its setting, its number and where it leads.
struct Rules<'r>(Vec<Rule<'r>>);

struct Rule<'r> {
    setting: &'static str,
    number: usize,
    choice: PathChoice<'r>,
    to: &'r Template,
}

impl<'r> Rules<'r> {
    fn of(redirects: &'r [crate::model::Redirect], rewrites: &'r [crate::model::Rewrite]) -> Self {
        let redirects = redirects.iter().map(|it| (it.choice(), &it.to)).enumerate();
        let rewrites = rewrites.iter().map(|it| (it.choice(), &it.to)).enumerate();
        let all = redirects.map(|it| ("redirect", it)).chain(rewrites.map(|it| ("rewrite", it)));
        Self(
            all.map(|(setting, (number, (choice, to)))| Rule { setting, number, choice, to })
                .collect(),
        )
    }
}

/// The groups that are filled in are there.
fn check_rules(trail: &str, own: Option<&Expression>, rules: &Rules<'_>, reader: &mut Reader<'_>) {
    for Rule { setting, number, choice, to } in &rules.0 {
        let rule = format!("{trail}.{setting}.{number}");
        if reader.is_written(&format!("{rule}.from"))
            && let Some(place) = reader.place(&format!("{rule}.regex"))
        {
            let message = "`from` says which paths are meant as well".to_owned();
            reader.report_at(&place, message, Help::act("remove one of both"));
        }
        let Some(place) = reader.place(&format!("{rule}.to")) else { continue };
        let expression = match choice {
            PathChoice::Expression(expression) => Some(*expression),
            PathChoice::All => own,
            PathChoice::Pattern(_) => None,
        };
        let (groups, what, help) = match (choice, expression) {
            (PathChoice::Pattern(from), _) => {
                (PathPattern::stars(from), "`from` has", "write more stars in `from`")
            }
            (_, Some(expression)) => {
                (expression.groups(), "`regex` has", "write more groups in `regex`")
            }
            (_, None) => (0, "`from` has", "write more stars in `from`"),
        };
        if to.captures() > groups {
            let noun = if expression.is_some() { "groups" } else { "stars" };
            let message = format!("{what} {groups} {noun}, so {{{}}} is nothing", groups + 1);
            reader.report_at(&place, message, Help::act(help));
        }
        let is_unknown = |name: &&str| !expression.is_some_and(|it| it.has_group(name));
        if let Some(name) = to.names().find(is_unknown) {
            let message = format!(
                "{{{name}}} is none of {{path}}, {{rest}}, {{host}}, {{1}} to {{9}}, and no `regex` has a group of that name"
            );
            let help = format!("write a `regex` with (?<{name}>…)");
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

/// A redirect of all paths does not lead below its own route.
/// A rewritten path that stays in its route is found there, where it must be no other route's; and before routes there is none
/// to stay in.
fn check_stay(trail: &str, rewrites: &[Rewrite], why_not: &str, reader: &mut Reader<'_>) {
    let staying = rewrites.iter().enumerate().filter(|(_, it)| it.stay);
    for (number, _) in staying {
        if let Some(place) = reader.place(&format!("{trail}.rewrite.{number}.stay")) {
            reader.report_at(&place, why_not.to_owned(), Help::act("remove it"));
        }
    }
}

fn check_circles(trail: &str, route: &Route, reader: &mut Reader<'_>) {
    let Some(own) = route.place().filter(|_| route.regex.is_none() && route.when.is_empty()) else {
        return;
    };
    for (number, redirect) in route.redirects.iter().enumerate() {
        let beginning = redirect.to.beginning();
        let is_below = !beginning.is_empty() && own.has(beginning);
        if is_below
            && matches!(redirect.choice(), PathChoice::All)
            && let Some(place) = reader.place(&format!("{trail}.redirect.{number}.to"))
        {
            let message = "that lies below the same route, so clients would go round in circles";
            let help = Help::act("write `from` with the paths that are meant");
            reader.report_at(&place, message.to_owned(), help);
        }
    }
}

/// Any page could read what one user may see; and of two that speak nobody knows which holds.
fn check_cors(trail: &str, site: &Site, route: &Route, reader: &mut Reader<'_>) {
    let Some(cors) = &route.cors else { return };
    let is_of = |name: &str| name.to_ascii_lowercase().starts_with("access-control-");
    let mut headers = site.headers.iter().chain(&route.headers).filter(|it| !it.1.is_empty());
    if let Some((name, _)) = headers.find(|(name, _)| is_of(name))
        && let Some(place) = reader.place(&format!("{trail}.cors"))
    {
        let message = format!("{name} is among the headers as well");
        reader.report_at(&place, message, Help::act("remove it from the headers"));
    }
    if !cors.credentials {
        return;
    }
    let any = cors.origins.iter().find(|origin| origin.value == "*");
    if let (Some(_), Some(place)) = (any, reader.place(&format!("{trail}.cors.credentials"))) {
        let message = "every origin with credentials: any page could read what its visitor may see";
        let help = Help::act("write the origins that are meant, or credentials = false");
        reader.report_at(&place, message.to_owned(), help);
    }
}
