//! `fastcgi_pass`, `uwsgi_pass` and `scgi_pass` of a location as a route that runs programs: which file runs, what it is told, and what
//! answers for one that is not there.

use std::path::PathBuf;

use kettle_config::{BackendProtocol, Origin, quoted};

use super::Writer;
use super::condition;
use super::pass::{accel_redirect, bounds};
use super::place::Spot;
use super::root::{Root, root_of};
use super::route::{Answer, Place, Route, Setting};
use super::target::Kind;
use crate::nginx::location::Shut;
use crate::nginx::map;
use crate::nginx::regex::{split_at_bars, translated as translated_regex};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, field, parts, with_said};
use crate::offer::{list, table, values};

pub(super) fn is_pass(directive: &Directive) -> bool {
    protocol_of(directive).is_some()
}

/// The protocol of such a directive, and what the names of all begin with that are about it.
fn protocol_of(pass: &Directive) -> Option<BackendProtocol> {
    let protocol: BackendProtocol = pass.name.strip_suffix("_pass")?.parse().ok()?;
    Some(protocol).filter(|it| it.runs_programs())
}

enum Script<'t> {
    /// The one that is asked for, below this root; names end so.
    Asked(Root<'t>, String),
    /// This one.
    Fixed(String),
    /// The application itself knows.
    Application,
}

impl Writer<'_> {
    /// Gives a route programs, to which this directive leads. If it `is_led`, what is not there has routes of its own.
    pub(super) fn fastcgi<'t>(
        &mut self,
        scope: &Scope<'t>,
        directive: &'t Directive,
        mut route: Route,
        (spot, is_led): (&Spot<'t>, bool),
    ) -> Result<Route, Shut<'t>> {
        let origin = &directive.origin;
        let (to, protocol) = self.application(scope, directive)?;
        let to = to.as_str();
        let params = scope.all(&format!("{protocol}_param"));
        let root = root_of(spot, scope)?;
        let is_file = root.as_ref().is_some_and(|it| it.directive.word(0).ends_with("/$1"));
        let document_root = self.document_root(root.as_ref(), is_file, origin);
        let script = script_of(&params, root, document_root.as_deref(), spot, directive)?;
        let mut own: Vec<(&str, String)> = Vec::new();
        let mut settings = Vec::new();
        let mut folder = None;
        match &script {
            Script::Asked(root, ending) => {
                let Some((path, of_files)) = self.program_files(scope, root, (spot, is_led))?
                else {
                    route.answer = Answer::Text("{ status = 404 }".to_owned());
                    return Ok(route);
                };
                (settings, folder) = (of_files, Some(path));
                own.push(("extensions", list([ending.as_str()].into_iter())));
                if !is_led && !looks_for_program(scope) {
                    own.push(("ask_missing", "true".to_owned()));
                }
            }
            Script::Fixed(script) => own.push(("script", quoted(script))),
            Script::Application => {}
        }
        if !is_led
            && !matches!(script, Script::Asked(..))
            && let Some(directive) = scope.own().iter().find(|it| it.name == "try_files")
            && std::ptr::eq(scope.own(), spot.scope.own())
        {
            return Err(Shut { directive, why: OTHER_TRIES });
        }
        let has_path_info = scope.find("fastcgi_split_path_info").is_some();
        if has_path_info && matches!(script, Script::Asked(..)) {
            own.push(("path_info", "true".to_owned()));
        }
        let root = document_root.as_deref();
        if let (Script::Fixed(_), Some(root), false) = (&script, root, is_file) {
            own.push(("root", quoted(root)));
        }
        let mut told = self.params(&params, root, spot, (&script, protocol));
        // If nobody says it, programs of nginx are not told what follows their names.
        if has_path_info && !params.iter().any(|it| it.word(0) == "PATH_INFO") {
            told.push(("PATH_INFO".to_owned(), "[]".to_owned()));
        }
        if !told.is_empty() {
            own.push((
                "params",
                table(told.iter().map(|(name, value)| (name.as_str(), value.clone()))),
            ));
        }
        let name = self.backend_of(scope, to, Kind::Programs(protocol), origin);
        route.answer = Answer::Programs(folder, name);
        route.origin = origin.clone();
        if !own.is_empty() {
            let own = own.iter().map(|(key, value)| format!("{key} = {value}"));
            let own = own.collect::<Vec<_>>().join(", ");
            settings.push(("fastcgi", format!("{{ {own} }}"), origin.clone()));
        }
        settings.extend(self.about_requests(scope, &params, (to, protocol), origin));
        route.settings = settings;
        Ok(route)
    }

    /// Which application is asked, and how.
    fn application<'t>(
        &self,
        scope: &Scope<'t>,
        directive: &'t Directive,
    ) -> Result<(String, BackendProtocol), Shut<'t>> {
        let protocol = protocol_of(directive).unwrap_or(BackendProtocol::FastCgi);
        let modifiers = ["uwsgi_modifier1", "uwsgi_modifier2"].map(|name| scope.find(name));
        let is_other = |it: &&Directive| protocol == BackendProtocol::Uwsgi && it.word(0) != "0";
        if let Some(directive) = modifiers.into_iter().flatten().find(is_other) {
            return Err(Shut { directive, why: MODIFIERS });
        }
        let to = with_said(directive.word(0), &self.said);
        let to = to.filter(|it| !it.is_empty() && !it.contains(['$', '{']));
        let to = to.ok_or(Shut { directive, why: VARIABLES })?;
        match to.strip_prefix("uwsgi://").unwrap_or(&to) {
            to if to.contains("://") => Err(Shut { directive, why: OVER_TLS }),
            to => Ok((to.to_owned(), protocol)),
        }
    }

    /// Returns the folder for which `$document_root` stands; nothing where it is not the same for all. The alias of a group is
    /// the file itself.
    fn document_root(
        &mut self,
        root: Option<&Root<'_>>,
        is_file: bool,
        origin: &Origin,
    ) -> Option<String> {
        let Some(root) = root else {
            // Without a folder nginx has its own.
            return Some(self.prefix.join("html").display().to_string());
        };
        let text = root.folder.display().to_string();
        let folder = root.path.is_none().then(|| self.below_prefix(&text, origin))?;
        let group = if is_file { "/{1}" } else { "" };
        Some(format!("{}{group}", folder.display()))
    }

    /// Writes the settings of requests for programs, and of their answers.
    fn about_requests(
        &mut self,
        scope: &Scope<'_>,
        params: &[&Directive],
        (to, protocol): (&str, BackendProtocol),
        origin: &Origin,
    ) -> Vec<Setting> {
        let mut settings = Vec::new();
        // As it came, unless somebody says it: behind a proxy it is what clients speak.
        if !params.iter().any(|it| it.word(0) == "HTTP_X_FORWARDED_PROTO") {
            let said = "{ \"X-Forwarded-Proto\" = \"{header:x-forwarded-proto}\" }";
            settings.push(("request_headers", said.to_owned(), origin.clone()));
        }
        settings.extend(limits(scope, protocol, origin));
        settings.extend(self.retry_on(scope, &format!("{protocol}_next_upstream"), to, origin));
        settings.extend(accel_redirect(scope));
        settings.extend(self.headers_of_backend(scope, origin));
        settings.extend(self.route_log(scope));
        settings
    }

    /// The folder of programs, and what is said of its files; nothing if it is not there.
    fn program_files<'t>(
        &mut self,
        scope: &Scope<'t>,
        root: &Root<'t>,
        (spot, is_led): (&Spot<'t>, bool),
    ) -> Result<Option<(PathBuf, Vec<Setting>)>, Shut<'t>> {
        let place = &root.directive.origin;
        let path = self.below_prefix(&root.folder.display().to_string(), place);
        if self.is_no_folder(&path) {
            let message =
                format!("{} is not there, so that {} gets 404", path.display(), spot.what());
            let help = "make it, and import anew: kettle starts with folders that are there";
            self.output.lose(place, message, help);
            return Ok(None);
        }
        let mut settings = self.route_settings(scope, spot, place);
        settings.retain(|(key, ..)| ["symlinks", "dotfiles"].contains(key));
        if root.strips {
            settings.push(("strip_prefix", "true".to_owned(), place.clone()));
        }
        // A file that is not there was led elsewhere before.
        if !is_led {
            settings.extend(tried(scope)?);
        }
        Ok(Some((path, settings)))
    }

    /// Writes the parameters of programs besides those of kettle.
    fn params(
        &mut self,
        params: &[&Directive],
        root: Option<&str>,
        spot: &Spot<'_>,
        (script, protocol): (&Script<'_>, BackendProtocol),
    ) -> Vec<(String, String)> {
        let is_told_whole =
            protocol != BackendProtocol::FastCgi && matches!(script, Script::Application);
        let mut outer = spot.scope.settings().flatten();
        let own_name = outer.find(|it| it.name == "server_name").map(|it| it.word(0));
        let mut told: Vec<(String, String)> = Vec::new();
        let takes_apart = spot.scope.find("fastcgi_split_path_info").is_some();
        for param in params {
            let (name, value) = match (param.word(0), param.word(1)) {
                // Applications go by it: WordPress makes addresses without `index.php` for servers that it knows.
                (name @ "SERVER_SOFTWARE", value) if value.starts_with("nginx/") => (name, "nginx"),
                (name @ "PATH_INFO", "$fastcgi_path_info") if !takes_apart && !is_told_whole => {
                    (name, "")
                }
                said => said,
            };
            let is_own_name = name == "SERVER_NAME" && Some(value) == own_name;
            let is_usual = is_own_name
                || is_told_whole
                    && name == "PATH_INFO"
                    && ["$document_uri", "$uri"].contains(&value)
                || protocol == BackendProtocol::Scgi && name == "SCGI"
                || !(is_told_whole && name == "SCRIPT_NAME")
                    && USUAL
                        .iter()
                        .any(|(usual, values)| *usual == name && values.contains(&value));
            let is_of_path = ["SCRIPT_FILENAME", "PATH_TRANSLATED"].contains(&name)
                || name == "PATH_INFO"
                    && is_path_info(value)
                    && matches!(script, Script::Asked(..))
                || name == "DOCUMENT_ROOT"
                    && ROOTS.contains(&value)
                    && !matches!(script, Script::Application)
                    && !root.is_some_and(|it| it.ends_with("/{1}"));
            // The last one of a name counts.
            told.retain(|(known, _)| known != name);
            if name == "DOCUMENT_URI"
                && let Some(regex) = script_tried(&spot.scope)
            {
                let map = map::of_script(&mut self.maps, &regex, &param.origin);
                told.push((name.to_owned(), values(&[map])));
                continue;
            }
            if is_usual || is_of_path || name == "HTTP_PROXY" {
                continue;
            }
            let said = translated(value, root, spot).filter(|_| !OWN.contains(&name));
            let is_fixed = name.starts_with("PHP_")
                || name == "SCRIPT_NAME"
                || name == "DOCUMENT_ROOT" && !ROOTS.contains(&value);
            match said.filter(|said| !(is_fixed && said.contains('{'))) {
                Some(said) => told.push((name.to_owned(), values(&[said]))),
                None => {
                    let help = "no word of kettle says it; `params` of the route's programs has texts and words";
                    self.tell_of_loss(param, help);
                    // Neither a client nor kettle says it in nginx's place.
                    if name.starts_with("HTTP_") || is_told_whole && name == "PATH_INFO" {
                        told.push((name.to_owned(), "[]".to_owned()));
                    }
                }
            }
        }
        // Programs make addresses of it; those that are told of no file find it empty, and their path in the other.
        let name = if is_told_whole { "PATH_INFO" } else { "SCRIPT_NAME" };
        if !params.iter().any(|it| it.word(0) == name) {
            told.push((name.to_owned(), "[]".to_owned()));
        }
        told
    }
}

/// Returns the name of the file that runs; an error where a request would say more of it than kettle lets it.
fn script_of<'t>(
    params: &[&'t Directive],
    root: Option<Root<'t>>,
    document_root: Option<&str>,
    spot: &Spot<'t>,
    pass: &'t Directive,
) -> Result<Script<'t>, Shut<'t>> {
    let Some(param) = params.iter().rfind(|it| it.word(0) == "SCRIPT_FILENAME").copied() else {
        return Ok(Script::Application);
    };
    let shut = Shut { directive: param, why: OTHER_SCRIPT };
    let value = param.word(1);
    let behind = ROOTS.iter().find_map(|root| value.strip_prefix(root));
    let is_asked = value == "$request_filename"
        || behind.is_some_and(|name| {
            ["$fastcgi_script_name", "$uri", "/$fastcgi_script_name"].contains(&name)
        });
    if is_asked {
        // `$document_root` is what an alias says, and the path behind it the whole one.
        let is_below = |it: &Root<'_>| {
            it.path.is_none() && (value == "$request_filename" || it.directive.name == "root")
        };
        let root = root.filter(is_below).ok_or(Shut { directive: param, why: NO_ROOT })?;
        let ending = match (&spot.key.regex, &spot.key.place) {
            (Some(regex), _) => ending_of(regex),
            (None, Place::Exact(path)) => ending_of_name(path),
            (None, _) => None,
        };
        let ending = ending.ok_or(Shut { directive: pass, why: ALL_FILES })?;
        return Ok(Script::Asked(root, ending));
    }
    let fixed = match behind {
        Some(rest) => format!("{}{rest}", document_root.ok_or(shut)?),
        None => value.to_owned(),
    };
    let is_plain = fixed.starts_with('/') && !fixed.contains(['$', '{', '}']);
    is_plain.then_some(Script::Fixed(fixed)).ok_or(shut)
}

/// True if nginx looks for a program itself before the application is asked.
fn looks_for_program(scope: &Scope<'_>) -> bool {
    scope.own().iter().any(|it| it.name == "try_files" || asks_for_program(it, scope))
}

/// True of an `if` that answers 404 for a program that is not there, in a place that runs none but those of its folder.
pub(super) fn asks_for_program(condition: &Directive, scope: &Scope<'_>) -> bool {
    let is_program = |path: &str| {
        let name = ROOTS.iter().find_map(|root| path.strip_prefix(root));
        name == Some("$fastcgi_script_name")
    };
    let [answer] = condition.inner() else { return false };
    let is_if = condition.name == "if";
    let params = scope.all("fastcgi_param");
    let script = params.iter().rfind(|it| it.word(0) == "SCRIPT_FILENAME");
    let has = |name: &str| scope.own().iter().any(|it| it.name == name);
    is_if
        && answer.name == "return"
        && answer.words == ["404"]
        && has("fastcgi_pass")
        && !has("try_files")
        && script.is_some_and(|it| is_program(it.word(1)))
        && condition::missing(condition).is_some_and(|path| is_program(&path))
}

/// Returns the text with which the names of all files end that an expression fits: `.php` of `\.php$` and of `[^/]\.php(/|$)`.
fn ending_of(regex: &str) -> Option<String> {
    let alternatives = split_at_bars(regex);
    if let [first, others @ ..] = alternatives.as_slice()
        && !others.is_empty()
    {
        let ending = ending_of(first)?;
        return others.iter().all(|it| ending_of(it).as_ref() == Some(&ending)).then_some(ending);
    }
    let bare = ENDS.iter().find_map(|end| regex.strip_suffix(end))?;
    let (_, letters) = bare.trim_end_matches(')').rsplit_once("\\.")?;
    let is_plain = !letters.is_empty() && letters.bytes().all(|it| it.is_ascii_alphanumeric());
    is_plain.then(|| format!(".{letters}"))
}

/// If anything may follow the name of a program: the expression of what begins with a slash there. The rest runs nothing here, and
/// is no file either.
pub(super) fn narrowed(regex: &str) -> Option<String> {
    ending_of(regex)?;
    Some(format!("{}(/.*)?$", regex.strip_suffix("(.*)$")?))
}

/// Returns the end of the name of one program.
fn ending_of_name(path: &str) -> Option<String> {
    let (_, letters) = path.rsplit('/').next()?.rsplit_once('.')?;
    let is_plain = !letters.is_empty() && letters.bytes().all(|it| it.is_ascii_alphanumeric());
    is_plain.then(|| format!(".{letters}"))
}

/// Returns the answer for a program that is not there.
fn tried<'t>(scope: &Scope<'t>) -> Result<Option<Setting>, Shut<'t>> {
    let Some(directive) = scope.own().iter().find(|it| it.name == "try_files") else {
        return Ok(None);
    };
    let shut = Shut { directive, why: OTHER_TRIES };
    let (last, before) = directive.words.split_last().ok_or(shut)?;
    let is_asked = |word: &String| {
        let name = word.trim_end_matches('/');
        ["$uri", "$fastcgi_script_name", "$document_uri"].contains(&name)
    };
    if !before.iter().all(is_asked) {
        return Err(shut);
    }
    match last.as_str() {
        "=404" => Ok(None),
        path if path.starts_with('/')
            && !path.contains(['$', '?', '{'])
            && !path.ends_with('/') =>
        {
            Ok(Some(("fallback", quoted(path), directive.origin.clone())))
        }
        _ => Err(shut),
    }
}

/// The expression for the name of a program, where nginx looks for that, and goes on with it as the path.
fn script_tried(scope: &Scope<'_>) -> Option<String> {
    let tries = scope.own().iter().find(|it| it.name == "try_files")?;
    let regex = translated_regex(scope.find("fastcgi_split_path_info")?.word(0), false)?;
    (tries.word(0) == "$fastcgi_script_name").then_some(regex)
}

/// The time a program has, and how long a body may be.
fn limits(scope: &Scope<'_>, protocol: BackendProtocol, origin: &Origin) -> Vec<Setting> {
    let of = |end: &str| format!("{protocol}_{end}");
    let mut settings = Vec::from(bounds(scope, &protocol.to_string(), origin));
    for (name, setting, value) in [
        ("request_buffering", "request_buffering", quoted("off")),
        ("buffering", "response_buffering", "false".to_owned()),
    ] {
        if let Some(off) = scope.find(&of(name)).filter(|it| it.word(0) == "off") {
            settings.push((setting, value, off.origin.clone()));
        }
    }
    if scope.is_on(&of("intercept_errors")) {
        settings.push(("intercept_errors", "true".to_owned(), origin.clone()));
    }
    settings
}

/// A value with kettle's words for nginx's variables; nothing where one has no word.
fn translated(value: &str, root: Option<&str>, spot: &Spot<'_>) -> Option<String> {
    let mut out = String::new();
    for part in parts(value) {
        match part {
            Part::Text(text) => out.push_str(&text.replace('{', "{{")),
            Part::Variable("document_root" | "realpath_root") => out.push_str(root?),
            Part::Variable("fastcgi_script_name") => out.push_str("{path}"),
            Part::Variable(name) if spot.has_group(name) => out.push_str(&format!("{{{name}}}")),
            Part::Variable(name) => out.push_str(&field(&format!("${{{name}}}"))?),
        }
    }
    Some(out)
}

fn is_path_info(value: &str) -> bool {
    ["$fastcgi_path_info", "$path_info"].contains(&value)
}

/// The parameters that kettle tells programs with nginx's values.
const USUAL: [(&str, &[&str]); 20] = [
    ("QUERY_STRING", &["$query_string", "$args"]),
    ("REQUEST_METHOD", &["$request_method"]),
    ("CONTENT_TYPE", &["$content_type"]),
    ("CONTENT_LENGTH", &["$content_length"]),
    ("SCRIPT_NAME", &["$fastcgi_script_name"]),
    ("REQUEST_URI", &["$request_uri"]),
    ("DOCUMENT_URI", &["$document_uri", "$uri"]),
    ("SERVER_PROTOCOL", &["$server_protocol"]),
    ("REQUEST_SCHEME", &["$scheme"]),
    ("HTTPS", &["$https"]),
    ("GATEWAY_INTERFACE", &["CGI/1.1"]),
    ("REMOTE_ADDR", &["$remote_addr"]),
    ("REMOTE_PORT", &["$remote_port"]),
    ("REMOTE_USER", &["$remote_user"]),
    ("SERVER_ADDR", &["$server_addr"]),
    ("SERVER_PORT", &["$server_port"]),
    ("SERVER_NAME", &["$server_name"]),
    ("REDIRECT_STATUS", &["200"]),
    ("HTTP_HOST", &["$http_host", "$host$is_request_port$request_port"]),
    ("HTTP_AUTHORIZATION", &["$http_authorization"]),
];
/// The parameters that fit each request.
const OWN: [&str; 3] = ["CONTENT_LENGTH", "CONTENT_TYPE", "REQUEST_METHOD"];
const ROOTS: [&str; 2] = ["$document_root", "$realpath_root"];
/// The ends of expressions for programs.
const ENDS: [&str; 8] = ["(/|$)", "($|/)", "(?:/|$)", "(?:$|/)", "(/.*)?$", "(.*)$", "(/.+)$", "$"];
const OVER_TLS: &str = "applications are spoken to in plain text";
const MODIFIERS: &str = "requests go with both modifiers 0, as applications in Python take them";
const VARIABLES: &str = "a variable says which application is asked";
const OTHER_SCRIPT: &str = "the file that runs is the one that was found below `root`, or `script`";
const NO_ROOT: &str = "programs are files below one folder";
const ALL_FILES: &str = "all files go to the application here, and kettle runs those whose names end so, and sends the others: write \
                         [site.route.fastcgi] by hand";
const OTHER_TRIES: &str = "a program that is not there has a file of its root in its place, or 404";
