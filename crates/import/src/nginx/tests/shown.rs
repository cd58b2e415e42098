//! The text made of a configuration, in few letters.

use kettle_config::Place;

use super::*;

/// Imports a text beside a file below `/srv/there`, and one with users.
pub fn beside_users(text: &str) -> Result<Imported, Vec<Diagnostic>> {
    let mut machine = Files::with("/etc/nginx/nginx.conf", text);
    for (path, text) in [
        ("/srv/there/key", ""),
        ("/etc/nginx/users", "# all\nann:$2y$05$abc\nbob:$argon2id$x:Bob\n"),
        ("/etc/nginx/weak", "ann:$2y$05$abc\nbob:$apr1$x$y\n"),
        ("/etc/nginx/empty", "# nobody\n\n"),
    ] {
        machine.0.insert(path.into(), text.to_owned());
    }
    import_file(Path::new("/etc/nginx/nginx.conf"), &machine)
}

/// The backend of the second listener, and the names of the sites beside the first one's.
pub fn stream(config: &Config) -> String {
    let shown = config.listeners.get(1).map(|it| {
        let backend = it.backends().next().map_or("-".to_owned(), |it| it.value.clone());
        let names = config.sites.iter().skip(1).flat_map(|it| &it.names);
        names.fold(backend, |shown, name| format!("{shown} {}", name.value))
    });
    shown.unwrap_or_default()
}

/// By site, `!` where paths with slashes in a row are refused, `.` where they are not.
pub fn refuses_slashes(config: &Config) -> String {
    config.sites.iter().map(|it| if it.refuse_double_slashes { '!' } else { '.' }).collect()
}

/// The routes of a configuration: what is asked before any behind a `|`; the place, with `*` behind a text, `=` before a path, `~`
/// before an expression, `^` where it is first; `->` before where it leads, `=>` where it stays at the place; how many conditions it has; `@` where no client may ask; and `!` where nobody is let in, `?` where not
/// everybody is, `>` where a backend answers, or what is answered.
pub fn routes(config: &Config) -> String {
    let mut all: Vec<String> = Vec::new();
    for site in &config.sites {
        for before in &site.before {
            let place =
                before.regex.as_ref().map_or(String::new(), |it| format!("~{}", it.as_str()));
            let ruled = rules(&before.redirects, &before.rewrites);
            let answer = before.respond.as_ref().map(answered).unwrap_or_default();
            all.push(format!("|{place}{}{ruled}{answer}", conditions(&before.when)));
        }
        all.extend(site.routes.iter().map(route));
    }
    all.join(" ")
}

fn conditions(when: &[kettle_config::Condition]) -> String {
    if when.is_empty() { String::new() } else { format!("{{{}}}", when.len()) }
}

fn answered(respond: &kettle_config::Respond) -> String {
    if respond.close { ":closed".to_owned() } else { format!(":{}", respond.status) }
}

fn rules(redirects: &[kettle_config::Redirect], rewrites: &[kettle_config::Rewrite]) -> String {
    let of = |choice: kettle_config::PathChoice<'_>| match choice {
        kettle_config::PathChoice::Expression(it) => format!("({})", it.as_str()),
        _ => String::new(),
    };
    let redirects = redirects.iter().map(|it| format!("{}->{}", of(it.choice()), it.status));
    let sign = |it: &kettle_config::Rewrite| if it.stay { "=>" } else { "->" };
    let rewrites = rewrites.iter().map(|it| format!("{}{}", of(it.choice()), sign(it)));
    redirects.chain(rewrites).collect()
}

fn route(route: &kettle_config::Route) -> String {
    let place = match (route.place(), &route.regex) {
        (None, _) => String::new(),
        (Some(Place::Prefix(prefix)), _) => format!("{prefix}/"),
        (Some(Place::TextPrefix(prefix)), _) => format!("{prefix}*"),
        (Some(Place::Exact(path)), _) => format!("={path}"),
    };
    let regex = route.regex.as_ref().map_or(String::new(), |it| format!("~{}", it.as_str()));
    let first = if route.first { "^" } else { "" };
    let is_guarded =
        !route.deny.is_empty() || !route.allow.is_empty() || route.basic_auth.is_some();
    let is_passed = route.backend.is_some();
    let has_answer = route.root.is_some() || is_passed || route.respond.is_some();
    let passed = if is_passed { ">" } else { "" };
    let mark = match (has_answer, is_guarded) {
        (false, true) => "!",
        (_, true) => "?",
        (_, false) => "",
    };
    let when = conditions(&route.when);
    let ruled = rules(&route.redirects, &route.rewrites);
    let answer = route.respond.as_ref().map(answered).unwrap_or_default();
    let internal = if route.internal { "@" } else { "" };
    format!("{first}{internal}{place}{regex}{when}{ruled}{passed}{mark}{answer}")
}
