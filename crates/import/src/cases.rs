//! Case files of the importers' tests: what another program's file says, and what becomes of it.
//!
//! Below a heading `== …` lines `in a server: …` or `in a file: …` say what stands around the words of the cases, at `WORDS`, or
//! around their two lines, at `FIRST` and `SECOND`; each of these lines is one of the text.
//! A case is a text from the beginning of its lines on (`-` for no words), and below it, with four spaces before, what must be true:
//! - `= …`, `served: …` and the like: the view of that name shows this of the configuration
//! - `has: …`, `lacks: …`: the TOML contains this somewhere, or does not
//! - `mistake: …`: the import fails, says this at the beginning of a message, and how to mend it
//! - any other lines: they stand in the TOML one below the other; `…` stands between two such runs

use std::path::Path;

use kettle_config::{Config, Diagnostic};

use crate::Imported;
use crate::files_in_memory::shown;

/// An importer's part in its case files.
pub(crate) struct Importer {
    /// Puts words of a server, or of whatever the format's main part is, into a whole file.
    pub(crate) server: fn(&str) -> String,
    pub(crate) import: fn(&str) -> Result<Imported, Vec<Diagnostic>>,
    /// The views of a configuration that a line may ask for, by the word before it.
    pub(crate) views: &'static [View],
}

pub(crate) type View = (&'static str, fn(&Config) -> String);

/// Imports each text of a case file, and holds what the file says of it.
#[track_caller]
pub(crate) fn hold(name: &str, importer: &Importer) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let mut around = Around::default();
    let mut case = Case::default();
    let mut wrong = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let is_said = line.starts_with(INDENT);
        if !is_said && !case.said.is_empty() {
            wrong.extend(std::mem::take(&mut case).fault(&around, importer));
        }
        if let Some(said) = line.strip_prefix(INDENT) {
            case.said.push(said.to_owned());
        } else if line.starts_with("== ") {
            around = Around::default();
        } else if let Some((place, text)) =
            line.split_once(": ").filter(|it| it.0.starts_with("in a "))
        {
            around.is_file = place == "in a file";
            around.text += &format!("{text}\n");
        } else if !line.is_empty() && !line.starts_with('#') {
            let is_first = case.text.is_empty();
            case.place = if is_first { format!("{name}:{}", number + 1) } else { case.place };
            case.text += if is_first { "" } else { "\n" };
            case.text += line;
        }
    }
    wrong.extend(case.fault(&around, importer));
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The text that stands around the words of cases.
#[derive(Default)]
struct Around {
    text: String,
    is_file: bool,
}

#[derive(Default)]
struct Case {
    place: String,
    text: String,
    said: Vec<String>,
}

impl Case {
    /// Returns what is not as the case says, if anything is.
    fn fault(self, around: &Around, importer: &Importer) -> Option<String> {
        let Self { place, text: words, said } = self;
        if words.is_empty() {
            return None;
        }
        let said_words =
            |words: &str| if words == NO_WORDS { String::new() } else { words.to_owned() };
        let (first, second) = words.split_once('\n').unwrap_or((&words, NO_WORDS));
        let mut text = around.text.replace("WORDS", &said_words(&words));
        text = text.replace("FIRST", &said_words(first)).replace("SECOND", &said_words(second));
        let text = if around.is_file { text } else { (importer.server)(&text) };
        let made = (importer.import)(&text);
        let config = made.as_ref().map_err(Vec::clone).and_then(Imported::config);
        let fault = match (&made, said.first().and_then(|it| it.strip_prefix("mistake: "))) {
            (_, Some(said)) => mistake_fault(&config.err().unwrap_or_default(), said),
            (Err(found), None) => Some(shown(found)),
            (Ok(made), None) => toml_fault(&said, made, config.ok().as_ref(), importer),
        };
        fault.map(|fault| format!("{place}: {words}\n{fault}"))
    }
}

fn mistake_fault(found: &[Diagnostic], said: &str) -> Option<String> {
    let found = shown(found);
    let message =
        |line: &str| line.split_once(".conf:").unwrap_or(("", line)).1.trim_start().to_owned();
    let is_said = found.lines().any(|line| message(line).starts_with(said));
    let is_right = is_said && found.contains("help: ");
    (!is_right).then(|| format!("  expected: {said}\n  found:    {found}"))
}

/// Compares each line that is said. A text of which nothing is left has views that are empty.
fn toml_fault(
    said: &[String],
    made: &Imported,
    config: Option<&Config>,
    importer: &Importer,
) -> Option<String> {
    let toml = &made.toml;
    if said.is_empty() || config.is_none() && toml.contains("[[site]]") {
        return Some(format!("nothing is said of it, or it is not valid:\n{toml}"));
    }
    let mut lines = String::from("\n");
    for said in said {
        let mut views = importer.views.iter();
        let view = views.find_map(|(word, view)| Some((view, said.strip_prefix(word)?)));
        if let Some((view, expected)) = view {
            let found = config.map(view).unwrap_or_default();
            if found != expected.trim_start() {
                return Some(format!("  expected:{expected}\n  found:    {found}"));
            }
        } else if let Some(words) = said.strip_prefix("has: ") {
            if !toml.contains(words) {
                return Some(format!("  `{words}` is not in\n{toml}"));
            }
        } else if let Some(words) = said.strip_prefix("lacks: ") {
            if toml.contains(words) {
                return Some(format!("  `{words}` is in\n{toml}"));
            }
        } else {
            lines += &format!("{said}\n");
        }
    }
    let toml = format!("\n{toml}");
    let mut runs = lines.split("…");
    let lacking = runs.find(|run| !toml.contains(*run))?;
    Some(format!("  these lines are not in one run:{lacking}  in{toml}"))
}

/// The addresses that are listened on.
pub(crate) fn listeners(config: &Config) -> String {
    let all = config.listeners.iter().map(|it| it.address.to_string());
    all.collect::<Vec<_>>().join(" ")
}

/// The names that servers' certificates must show, by backend that is asked by TLS.
pub(crate) fn names_of_servers(config: &Config) -> String {
    let asked = config.backends.iter().filter_map(|it| it.tls.as_ref());
    let names = asked.map(|it| it.name.clone().unwrap_or_else(|| "-".to_owned()));
    names.collect::<Vec<_>>().join(" ")
}

/// The indent of each line that must be true.
const INDENT: &str = "    ";
/// The text of a case without words.
const NO_WORDS: &str = "-";
