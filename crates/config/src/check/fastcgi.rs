//! Routes whose backend speaks FastCGI: which file is a program, and what answers where none is.

use std::collections::HashMap;

use crate::diagnostic::Help;
use crate::model::{
    Backend, BackendChoices, Config, FastCgi, FieldPart, FieldTemplate, Missing, Route,
};
use crate::read::Reader;

/// Records every mistake of such routes and their backends.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    let backends = config.backends.iter().enumerate();
    let backends: HashMap<&str, (usize, &Backend)> =
        backends.map(|(number, it)| (it.name.value.as_str(), (number, it))).collect();
    let choices = BackendChoices::of(config);
    check_pages(config, reader);
    for (number, site) in config.sites.iter().enumerate() {
        for (route, it) in site.routes.iter().enumerate() {
            let trail = format!("site.{number}.route.{route}");
            let named = || choices.backends(it).filter_map(|name| backends.get(name));
            if let Some(fastcgi) = &it.fastcgi {
                check_table(&trail, it, fastcgi, named().next().map(|(_, it)| *it), reader);
            }
            let mut programs = named().filter(|(_, it)| it.protocol.runs_programs()).peekable();
            if programs.peek().is_some() {
                check_route(&trail, it, reader);
            }
            for (number, backend) in programs {
                let keeps =
                    backend.keep_alive.is_some_and(|kept| kept > backend.connections_kept());
                for (setting, is_wrong, message) in [
                    ("tls", true, "programs are spoken to in plain text"),
                    ("keep_alive", keeps, "a connection of this protocol ends with its response"),
                ] {
                    let place = reader.place(&format!("backend.{number}.{setting}"));
                    if let Some(place) = place.filter(|_| is_wrong) {
                        reader.report_at(&place, message.to_owned(), Help::act("remove it"));
                    }
                }
            }
        }
    }
}

/// A page of an error is read by its path, and sent as it is.
fn check_pages(config: &Config, reader: &mut Reader<'_>) {
    let routes = || config.sites.iter().flat_map(|site| &site.routes);
    let endings = routes().filter_map(|route| route.fastcgi.as_ref()).flat_map(|it| &it.extensions);
    let endings: Vec<&String> = endings.collect();
    let pages = config.sites.iter().map(|site| &site.error_pages);
    let pages = pages.chain(routes().map(|route| &route.error_pages)).flat_map(|it| it.values());
    for page in pages.filter_map(|page| page.file()) {
        let name = page.value.to_string_lossy().to_ascii_lowercase();
        if endings.iter().any(|ending| name.ends_with(&ending.to_ascii_lowercase())) {
            let message = "this is a program, and its source would be sent".to_owned();
            let help = "write { route = \"/404.php\" }, the path of a route that runs it";
            reader.report_located(page, message, Help::act(help));
        }
    }
}

fn check_table(
    trail: &str,
    route: &Route,
    fastcgi: &FastCgi,
    backend: Option<&Backend>,
    reader: &mut Reader<'_>,
) {
    let own = format!("{trail}.fastcgi");
    let say = |reader: &mut Reader<'_>, setting: &str, message: &str, help: &str| {
        if let Some(place) = reader.place(setting) {
            reader.report_at(&place, message.to_owned(), Help::act(help));
        }
    };
    match backend {
        None if route.backend.is_none() => {
            let message = "`fastcgi` is about programs behind a backend, and the route has none";
            say(reader, &own, message, "write `backend` as well, or remove it");
        }
        Some(backend) if !backend.protocol.runs_programs() => {
            let message = format!("the backend \"{}\" speaks HTTP/1.1", backend.name);
            let help = "write protocol = \"fastcgi\" in that [[backend]], or remove this";
            say(reader, &own, &message, help);
        }
        _ => {}
    }
    let extensions = format!("{own}.extensions");
    let index = format!("{own}.index");
    let script = format!("{own}.script");
    if route.root.is_none() {
        let message = "this is about files of `root`, and the route has none";
        for setting in [&extensions, &index] {
            say(reader, setting, message, "write `root` of the route as well, or remove it");
        }
    }
    if fastcgi.extensions.is_empty() {
        let message = "without a name that ends so, every program would be sent as a file";
        say(reader, &extensions, message, "write [\".php\"]");
    }
    let answers = [(&index, fastcgi.index.is_some()), (&script, fastcgi.script.is_some())];
    let message = "what is not found has another answer already";
    if route.fallback.is_some() && route.root.is_some() {
        for (setting, _) in answers.iter().filter(|(_, is_written)| *is_written) {
            say(reader, setting, message, "remove this, or `fallback` of the route");
        }
    }
    if answers.iter().all(|(_, is_written)| *is_written) {
        say(reader, &script, message, "remove this, or `index`");
    }
    if fastcgi.path_info && route.encoded_slashes {
        let message =
            "a program could not tell an encoded slash of `PATH_INFO` from one that is none";
        say(reader, &format!("{own}.path_info"), message, "remove this, or `encoded_slashes`");
    }
    check_parameters(&own, route, fastcgi, reader);
}

fn check_parameters(trail: &str, route: &Route, fastcgi: &FastCgi, reader: &mut Reader<'_>) {
    for (name, values) in &fastcgi.params {
        let Some(place) = reader.place(&format!("{trail}.params.{name}")) else { continue };
        let own = match name.as_str() {
            "SCRIPT_FILENAME" | "PATH_TRANSLATED" | "ORIG_SCRIPT_FILENAME" => {
                Some("write `root` of the route, or `script`")
            }
            "CONTENT_LENGTH"
            | "CONTENT_TYPE"
            | "REQUEST_METHOD"
            | "HTTP_CONTENT_LENGTH"
            | "HTTP_CONTENT_TYPE"
            | "HTTP_TRANSFER_ENCODING"
            | "SCGI" => Some("remove it: it has to fit each request"),
            "HTTP_PROXY" => Some("remove it: programs take it for their own proxy"),
            _ => None,
        };
        if let Some(help) = own {
            let message = format!("`{name}` is said by kettle alone");
            reader.report_at(&place, message, Help::act(help));
            continue;
        }
        let is_of_operator = name.starts_with("PHP_") || CHOOSING.contains(&name.as_str());
        let is_below = name == "DOCUMENT_ROOT" && values.iter().all(|it| is_below_root(it, route));
        if is_of_operator && !is_below && values.iter().any(FieldTemplate::has_words) {
            let message = format!("`{name}` says what runs and how, so no request fills it in");
            reader.report_at(&place, message, Help::act("write a text without words"));
            continue;
        }
        let groups = values.iter().flat_map(FieldTemplate::parts).filter_map(|part| match part {
            FieldPart::Group(group) => Some(group),
            _ => None,
        });
        let has = |group: &str| {
            route.regex.as_ref().is_some_and(|regex| regex.group_number(group).is_some())
        };
        for group in groups.filter(|group| !has(group)) {
            let message =
                format!("{{{group}}} is no word, and `regex` of the route has no such group");
            let help = "write a word of `request_headers`, or `{{` for a brace itself";
            reader.report_at(&place, message, Help::act(help));
        }
        let mut words = values.iter().filter_map(FieldTemplate::not_of_url);
        if let Some(word) = words.next().filter(|_| route.cache.is_some()) {
            let message =
                format!("{word} is one client's, and the responses of this route are kept for all");
            let help = "write {scheme}, {host} or {uri}, or move it to a route without `cache`";
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

/// True of a path below the route's root, of which groups of its expression say a part, as they say which program is found there.
fn is_below_root(path: &FieldTemplate, route: &Route) -> bool {
    let root = route.root.as_ref().and_then(|it| it.value.to_str());
    let [FieldPart::Text(begin), rest @ ..] = path.parts() else { return false };
    let below = root.and_then(|root| begin.strip_prefix(root.trim_end_matches('/')));
    below.is_some_and(|below| below.starts_with('/') && !below.contains(".."))
        && rest.iter().all(|part| matches!(part, FieldPart::Group(_)))
}

/// Refuses what programs cannot be told, or would not understand.
fn check_route(trail: &str, route: &Route, reader: &mut Reader<'_>) {
    if route.root.is_some()
        && route.fastcgi.is_none()
        && let Some(place) = reader.place(&format!("{trail}.root"))
    {
        let message = "the backend runs programs, and nothing says which of these files are some";
        let help = "write [site.route.fastcgi] as well, or remove `root`";
        reader.report_at(&place, message.to_owned(), Help::act(help));
    }
    if route.missing == Missing::Backend
        && let Some(place) = reader.place(&format!("{trail}.missing"))
    {
        let message = "nothing says which program answers for what is not there";
        let help = "write `index` or `script` in [site.route.fastcgi] instead";
        reader.report_at(&place, message.to_owned(), Help::act(help));
    }
    let is_stripped = route.strip_prefix && route.root.is_none();
    for (setting, is_wrong, message) in [
        ("websocket", route.websocket, "programs change to no other protocol"),
        ("add_prefix", route.add_prefix.is_some(), TOLD),
        ("strip_prefix", is_stripped, TOLD),
    ] {
        if let Some(place) = reader.place(&format!("{trail}.{setting}")).filter(|_| is_wrong) {
            reader.report_at(&place, message.to_owned(), Help::act("remove it"));
        }
    }
}

/// The parameters by which programs look for a file.
const CHOOSING: [&str; 2] = ["DOCUMENT_ROOT", "SCRIPT_NAME"];
const TOLD: &str =
    "programs are told the path that was asked for; with `path_info` they are told its parts";
