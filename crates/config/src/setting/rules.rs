//! The rules for texts: names, header values, patterns and the like.
//!
//! A rule says what it takes, shows an example, and turns the written text into the stored one.

mod acme;
mod name;
mod prefix;
mod program;
mod request;

use super::quote::quoted;
use crate::diagnostic::Help;
use crate::glob;

pub(crate) use acme::{
    ACME_CONTACT, ACME_DIRECTORY, ACME_WORD, LETS_ENCRYPT, LETS_ENCRYPT_STAGING,
};
pub(super) use name::{host_name, site_name};
pub use prefix::written_prefix;
pub(crate) use request::{
    ANSWER, ANY_TEXT, ARGUMENT_NAME, ASKED_HOST, COOKIE_NAME, COPIED_FIELD, GROUP_NAME,
};

/// The rule for one kind of text.
pub(crate) struct TextRule {
    /// The kind of text, for messages and the reference: "a header name".
    pub(crate) what: &'static str,
    /// A value that is right.
    pub(crate) example: &'static str,
    /// Reads the text, or says what is wrong with it.
    pub(crate) read: fn(&str) -> Result<String, Wrong>,
}

/// The fault of a text, and what to do about it.
pub(crate) struct Wrong {
    pub(crate) why: String,
    pub(crate) help: Guess,
}

/// The guess at what was meant by a text that breaks its rule.
pub(crate) enum Guess {
    /// No idea: the rule's example is shown.
    None,
    /// Most likely this text.
    Text(String),
    /// Something else than another text.
    Advice(String),
}

impl Guess {
    /// The advice to show; `written` turns a text into what stands in the file.
    pub(crate) fn advice(self, rule: &TextRule, written: fn(&str) -> String) -> Help {
        match self {
            Self::None => Help::write(format!("{}, such as {}", rule.what, written(rule.example))),
            Self::Text(text) => Help::write(written(&text)),
            Self::Advice(advice) => Help::act(advice),
        }
    }
}

impl Wrong {
    pub(super) fn new(why: &str) -> Self {
        Self { why: why.to_owned(), help: Guess::None }
    }

    pub(super) fn suggesting(why: &str, suggestion: impl Into<String>) -> Self {
        Self { why: why.to_owned(), help: Guess::Text(suggestion.into()) }
    }

    fn advice(why: &str, advice: impl Into<String>) -> Self {
        Self { why: why.to_owned(), help: Guess::Advice(advice.into()) }
    }
}

/// The name of a site that stands for every name no other site has.
pub const ANY_NAME: &str = "_";
const BEGINS_WITH_SLASH: &str = "the path of a request always begins with a slash";

/// 32 bytes in Base64, with padding.
const PIN_BYTES: usize = 44;
/// The characters that their last may be: its low bits are behind the 32 bytes (RFC 4648 section 3.5).
const PIN_LAST: [char; 16] =
    ['A', 'E', 'I', 'M', 'Q', 'U', 'Y', 'c', 'g', 'k', 'o', 's', 'w', '0', '4', '8'];

/// Longest name of a backend or a server.
const NAME_BYTES_MAX: usize = 64;

/// True if no header of this name may be configured, because kettle writes it to fit each response.
pub fn is_own_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == CONTENT_TYPE || OWN_HEADERS.contains(&name.as_str())
}

/// Has a table of its own.
const CONTENT_TYPE: &str = "content-type";

/// True if a site may have this name.
pub fn is_site_name(name: &str) -> bool {
    (SITE_NAME.read)(name).is_ok()
}

/// Headers whose value follows from the response; another value would contradict it.
const OWN_HEADERS: [&str; 13] = [
    "accept-ranges",
    "age",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "date",
    "etag",
    "keep-alive",
    "last-modified",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(crate) static SITE_NAME: TextRule =
    TextRule { what: "a host name", example: "example.org", read: name::name_or_pattern };
pub(crate) static SERVER_NAME: TextRule =
    TextRule { what: "a host name", example: "example.org", read: site_name };
pub(crate) static HEADER_NAME: TextRule =
    TextRule { what: "a header name", example: "X-Frame-Options", read: header_name };
pub(crate) static CACHE_CONTROL: TextRule =
    TextRule { what: "a header value", example: "max-age=86400", read: header_value };
pub(crate) static BACKEND_NAME: TextRule = TextRule {
    what: "a name of letters, digits, `-`, `_` and `.`",
    example: "app",
    read: backend_name,
};
pub(crate) static ROUTE_BACKEND: TextRule = TextRule {
    what: "the name of a backend, or `{map:NAME}`",
    example: "app",
    read: |text| backend_name(map_word(text).unwrap_or(text)).map(|_| text.to_owned()),
};
pub(crate) static ALPN: TextRule =
    TextRule { what: "an application protocol", example: "http/1.1", read: alpn };
pub(crate) static PIN: TextRule = TextRule {
    what: "`sha256/` and a hash in Base64",
    example: "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    read: pin,
};
pub(crate) static USER_NAME: TextRule =
    TextRule { what: "the name or number of an account", example: "kettle", read: user_name };
pub(crate) static PREFIX: TextRule =
    TextRule { what: "a path that begins with a slash", example: "/", read: prefix::prefix };
pub(crate) static PATH_TEXT: TextRule =
    TextRule { what: "a path that begins with a slash", example: "/", read: prefix::path };
pub(crate) static REQUEST_TARGET: TextRule = TextRule {
    what: "a path that begins with a slash, with or without a query",
    example: "/health?full=1",
    read: request_target,
};
pub(crate) static FALLBACK: TextRule = TextRule {
    what: "a file below `root` that begins with a slash",
    example: "/index.html",
    read: fallback,
};
pub(crate) static REALM: TextRule =
    TextRule { what: "a text of printable ASCII", example: "restricted", read: realm };
pub(crate) static ORIGIN: TextRule =
    TextRule { what: "an origin", example: "https://example.org", read: origin };
pub(crate) static METHOD: TextRule = TextRule { what: "a method", example: "GET", read: token };
pub(crate) static FIELD_NAME: TextRule =
    TextRule { what: "a header name", example: "authorization", read: token };
pub(crate) static FILE_NAME: TextRule =
    TextRule { what: "a file name", example: "index.html", read: file_name };
pub(crate) static CHARSET: TextRule =
    TextRule { what: "the name of a charset", example: "utf-8", read: token };
pub(crate) static PATTERN: TextRule =
    TextRule { what: "a pattern of `*`, `**` and `?`", example: "*.css", read: pattern };
pub(crate) static EXTENSION: TextRule =
    TextRule { what: "a file extension", example: "wasm", read: extension };
pub(crate) static PROGRAM_ENDING: TextRule = TextRule {
    what: "a file extension with its dot",
    example: ".php",
    read: program::program_ending,
};
pub(crate) static PROGRAM_FILE: TextRule = TextRule {
    what: "a file below `root`",
    example: "/index.php",
    read: |text| fallback(&format!("/{}", text.strip_prefix('/').unwrap_or(text))),
};
pub(crate) static APPLICATION_PATH: TextRule =
    TextRule { what: "an absolute path", example: "/srv/www", read: program::application_path };
pub(crate) static PARAMETER_NAME: TextRule = TextRule {
    what: "a name of letters, digits and `_`",
    example: "APP_ENV",
    read: program::parameter_name,
};
pub(crate) static MIME_TYPE: TextRule =
    TextRule { what: "a MIME type", example: "application/wasm", read: mime_type };
pub(crate) static MEDIA_RANGE: TextRule = TextRule {
    what: "a MIME type, `text/*` or `*/*`",
    example: "application/json",
    read: media_range,
};
pub(crate) static STATUS: TextRule =
    TextRule { what: "a status from 300 to 599", example: "404", read: status };

/// The name in `{map:NAME}`.
pub(crate) fn map_word(text: &str) -> Option<&str> {
    text.strip_prefix("{map:")?.strip_suffix('}')
}

fn backend_name(text: &str) -> Result<String, Wrong> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    match (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(Wrong::new("log, metrics and command line show it as it is")),
    }
}

/// A protocol's name is 1 to 255 bytes (RFC 7301 section 3.1); all that are registered are visible ASCII.
fn alpn(text: &str) -> Result<String, Wrong> {
    if let Some((first, second)) = text.split_once(',') {
        let advice = format!("write [{}, {}]", quoted(first.trim()), quoted(second.trim()));
        return Err(Wrong::advice("each protocol is an entry of its own", advice));
    }
    match (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text.to_owned()),
        false => Err(Wrong::new("its name has 1 to 255 visible characters of ASCII")),
    }
}

fn pin(text: &str) -> Result<String, Wrong> {
    // curl writes two slashes, and the hash may begin with one.
    let written = text.strip_prefix("sha256/").map(|hash| match hash.len() {
        0..=PIN_BYTES => hash,
        _ => hash.strip_prefix('/').unwrap_or(hash),
    });
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    match written.and_then(|hash| hash.strip_suffix('=')) {
        Some(hash)
            if hash.len() + 1 == PIN_BYTES
                && hash.bytes().all(is_base64)
                && hash.ends_with(PIN_LAST) =>
        {
            Ok(format!("sha256/{hash}="))
        }
        _ => Err(Wrong::new("the SHA-256 of a public key is 44 characters of Base64")),
    }
}

/// The characters of an HTTP token (RFC 9110 section 5.6.2).
fn is_token(text: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

pub(super) fn token(text: &str) -> Result<String, Wrong> {
    if is_token(text) { Ok(text.to_owned()) } else { Err(Wrong::new("it has other characters")) }
}

fn header_name(text: &str) -> Result<String, Wrong> {
    if !is_token(text) {
        let suggestion = text.trim().trim_end_matches(':').replace(' ', "-");
        let why = "it has only letters, digits and !#$%&'*+-.^_`|~";
        return match is_token(&suggestion) {
            true => Err(Wrong::suggesting(why, suggestion)),
            false => Err(Wrong::new(why)),
        };
    }
    let lower = text.to_ascii_lowercase();
    if OWN_HEADERS.contains(&lower.as_str()) {
        let why = "kettle writes this header itself, to fit each response";
        return Err(Wrong::advice(why, "remove it"));
    }
    if lower == CONTENT_TYPE {
        let why = "the type follows from the extension of the file";
        return Err(Wrong::advice(why, "write it in the table `mime` of the route"));
    }
    Ok(text.to_owned())
}

pub(super) fn header_value(text: &str) -> Result<String, Wrong> {
    let is_control = |character: char| character.is_control() && character != '\t';
    if text.contains(is_control) {
        let one_line: Vec<&str> =
            text.split(is_control).map(str::trim).filter(|part| !part.is_empty()).collect();
        let why = "a header value is one line without control characters";
        return Err(Wrong::suggesting(why, one_line.join(" ")));
    }
    if text.trim() != text {
        return Err(Wrong::suggesting("spaces around a header value are not sent", text.trim()));
    }
    Ok(text.to_owned())
}

fn user_name(text: &str) -> Result<String, Wrong> {
    let is_plain = |character: char| !character.is_whitespace() && !character.is_control();
    if text.is_empty() || !text.chars().all(is_plain) || text.contains([':', '/']) {
        return Err(Wrong::new("it cannot be the name of an account"));
    }
    Ok(text.to_owned())
}

/// Reads a request target as it stands in a request line (RFC 9112 §3.2.1).
fn request_target(text: &str) -> Result<String, Wrong> {
    if !text.starts_with('/') {
        return Err(Wrong::suggesting(BEGINS_WITH_SLASH, format!("/{text}")));
    }
    if let Some((before, _)) = text.split_once('#') {
        return Err(Wrong::suggesting("a fragment is not sent to servers", before));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let why = "a request line holds visible ASCII only";
        return Err(Wrong::advice(why, "write its bytes as %XX: `%20` is a space"));
    }
    let has_two = |rest: &str| rest.bytes().take_while(u8::is_ascii_hexdigit).count() >= 2;
    match text.split('%').skip(1).all(has_two) {
        true => Ok(text.to_owned()),
        false => Err(Wrong::advice("two digits stand behind `%`", "write `%25` for a `%` itself")),
    }
}

fn fallback(text: &str) -> Result<String, Wrong> {
    if text.starts_with('=') {
        return Err(Wrong::advice("404 is the answer without it", "remove it"));
    }
    let path = prefix::path(text)?;
    match path.ends_with('/') {
        true => Err(Wrong::suggesting("it is a file, not a folder", format!("{path}index.html"))),
        false => Ok(path),
    }
}

fn without_dots(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    format!("/{}", segments.join("/"))
}

/// Reads the text between quotes in a challenge (RFC 9110 section 11.5).
fn realm(text: &str) -> Result<String, Wrong> {
    let is_plain = |byte: u8| (byte == b' ' || byte.is_ascii_graphic()) && !b"\"\\".contains(&byte);
    match text.bytes().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(Wrong::new("it stands between quotes in a header")),
    }
}

/// Scheme, host, and a port that is not the scheme's own, as browsers write them (RFC 6454 section 6.2).
fn origin(text: &str) -> Result<String, Wrong> {
    if text == "*" {
        return Ok(text.to_owned());
    }
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let has_path = rest.find('/').and_then(|slash| rest.get(..slash));
    if let Some(authority) = has_path.filter(|authority| !authority.is_empty()) {
        return Err(Wrong::suggesting("it has no path", format!("{scheme}://{authority}")));
    }
    let own_port = if scheme == "https" { ":443" } else { ":80" };
    if let Some(host) = rest.strip_suffix(own_port) {
        return Err(Wrong::suggesting(
            "browsers leave this port out",
            format!("{scheme}://{host}"),
        ));
    }
    let is_of_authority =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._:[]".contains(&byte);
    let is_scheme = |byte: u8| byte.is_ascii_lowercase() || b"+-.".contains(&byte);
    let is_right = !scheme.is_empty()
        && !rest.is_empty()
        && scheme.bytes().all(is_scheme)
        && rest.bytes().all(is_of_authority);
    match is_right {
        true => Ok(text.to_owned()),
        false => Err(Wrong::new("it is a scheme, `://` and a host in small letters")),
    }
}

fn file_name(text: &str) -> Result<String, Wrong> {
    if let Some((_, name)) = text.rsplit_once('/') {
        let why = "only files of the folder itself can answer for it";
        return Err(if name.is_empty() { Wrong::new(why) } else { Wrong::suggesting(why, name) });
    }
    if text.is_empty() || text == "." || text == ".." || text.contains('\0') {
        return Err(Wrong::new("it cannot be the name of a file"));
    }
    Ok(text.to_owned())
}

fn pattern(text: &str) -> Result<String, Wrong> {
    match glob::check(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(bad_pattern) => Err(match bad_pattern.suggestions.as_slice() {
            [] => Wrong::new(bad_pattern.why),
            [one] => Wrong::suggesting(bad_pattern.why, one),
            several => {
                let lines: Vec<String> =
                    several.iter().map(|pattern| format!("{} = …", quoted(pattern))).collect();
                Wrong::advice(bad_pattern.why, format!("write {}", lines.join(" and ")))
            }
        }),
    }
}

fn extension(text: &str) -> Result<String, Wrong> {
    let without_dot = text.trim_start_matches('*').trim_start_matches('.');
    if without_dot != text {
        return Err(Wrong::suggesting("an extension is written without its dot", without_dot));
    }
    if text.is_empty() || text.contains(['/', '.', '*']) || text.chars().any(char::is_control) {
        return Err(Wrong::new("it cannot be the last part of a file name"));
    }
    Ok(text.to_ascii_lowercase())
}

/// A media type with optional parameters (RFC 9110 section 8.3.1).
fn mime_type(text: &str) -> Result<String, Wrong> {
    let (essence, parameters) = match text.split_once(';') {
        Some((essence, parameters)) => (essence, Some(parameters)),
        None => (text, None),
    };
    let is_type = |essence: &str| {
        essence
            .trim()
            .split_once('/')
            .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
    };
    if !is_type(essence) {
        return Err(Wrong::new("a MIME type is two words around a slash"));
    }
    let is_parameter = |parameter: &str| {
        let (name, value) = parameter.trim().split_once('=').unwrap_or_default();
        let unquoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        is_token(name) && is_token(unquoted.unwrap_or(value))
    };
    match parameters.is_none_or(|text| text.split(';').all(is_parameter)) {
        true => Ok(text.trim().to_owned()),
        false => Err(Wrong::new("a parameter of a MIME type is name=value")),
    }
}

/// A media type, or all of a kind, or all (RFC 9110 section 12.5.1).
fn media_range(text: &str) -> Result<String, Wrong> {
    let why = "a MIME type is two words around a slash";
    if text == "*" {
        return Err(Wrong::suggesting(why, "*/*"));
    }
    if let Some((essence, _)) = text.split_once(';') {
        return Err(Wrong::suggesting("parameters do not count here", essence.trim()));
    }
    let (kind, subtype) = text.split_once('/').unwrap_or_default();
    let has_star = |word: &str| word.contains('*');
    match is_token(kind) && is_token(subtype) {
        true if has_star(kind) && text != "*/*" || has_star(subtype) && subtype != "*" => {
            Err(Wrong::new("`*` stands for a whole word behind the slash"))
        }
        true => Ok(text.to_ascii_lowercase()),
        false => Err(Wrong::new(why)),
    }
}

fn status(text: &str) -> Result<String, Wrong> {
    match text.parse::<u16>() {
        Ok(300..=599) => Ok(text.to_owned()),
        _ => Err(Wrong::new("only responses of these statuses have an error page")),
    }
}
