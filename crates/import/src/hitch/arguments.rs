//! The command lines of hitch and stud, split as getopt_long(3) splits them: options may be shortened, joined and follow
//! files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use kettle_config::{Diagnostic, Origin, closest};

use super::vocabulary::{Argument, CommandOption, OPTIONS, Term};
use super::{Dialect, Statement, Value, file};
use crate::{Imported, Surroundings};

/// The request of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A server.
    Run(Box<Imported>),
    /// The question whether the server would start.
    Test(Box<Imported>),
    /// The help.
    Help,
    /// The version.
    Version,
}

/// A command line as it was read.
#[derive(Debug)]
pub(super) struct Line {
    /// Those of the file first: the command line wins.
    pub(super) statements: Vec<Statement>,
    /// The file; empty if none was named.
    pub(super) path: PathBuf,
    pub(super) is_test: bool,
    pub(super) asks_for_text: Option<Asked>,
}

/// Reads a command line, without the program's name.
pub(super) fn read(
    dialect: Dialect,
    arguments: &[String],
    surroundings: &dyn Surroundings,
) -> Result<Line, Vec<Diagnostic>> {
    let mut split = Split::default();
    split.all(arguments)?;
    let mut line =
        Line { statements: Vec::new(), path: PathBuf::new(), is_test: false, asks_for_text: None };
    for (_, name, _) in split.options.iter().filter(|(option, ..)| option.long == "config") {
        line.path = surroundings.folder().join(name);
        line.statements.extend(file::read(Path::new(&line.path), surroundings)?);
    }
    let mut diagnostics = Vec::new();
    for (option, value, written) in split.options {
        match option.long {
            "config" => {}
            "test" => line.is_test = true,
            "help" => line.asks_for_text = line.asks_for_text.or(Some(Asked::Help)),
            "version" => line.asks_for_text = line.asks_for_text.or(Some(Asked::Version)),
            _ => match statement(dialect, option, value, written) {
                Ok(statement) => line.statements.push(statement),
                Err(wrong) => diagnostics.extend(wrong),
            },
        }
    }
    for file in split.files {
        let origin = Origin { written: file.clone(), ..Origin::default() };
        line.statements.push(Statement { key: "pem-file", value: Value::Text(file), origin });
    }
    if diagnostics.is_empty() { Ok(line) } else { Err(diagnostics) }
}

fn statement(
    dialect: Dialect,
    option: &CommandOption,
    value: String,
    written: String,
) -> Result<Statement, Vec<Diagnostic>> {
    let origin = Origin { written, ..Origin::default() };
    let unknown =
        || vec![origin.diagnostic(format!("`{}` stands for no setting", option.long), None)];
    let term = Term::find(option.key).ok_or_else(unknown)?;
    if option.argument == Argument::Optional && dialect == Dialect::Hitch && !value.is_empty() {
        let is_word = matches!(value.as_str(), "on" | "off") || option.short.is_some();
        if !is_word {
            let message = format!("--{} takes on or off, not `{value}`", option.long);
            return Err(vec![origin.diagnostic(message, None)]);
        }
    }
    let value = match option.argument {
        Argument::Optional | Argument::None if value.is_empty() => "on".to_owned(),
        _ => value,
    };
    file::check(term, &value).map_err(|(message, help)| vec![origin.diagnostic(message, help)])?;
    Ok(Statement { key: term.name, value: Value::Text(value), origin })
}

/// Options with their values and how they were written, and the rest.
#[derive(Default)]
struct Split {
    options: Vec<(&'static CommandOption, String, String)>,
    files: Vec<String>,
}

impl Split {
    fn all(&mut self, arguments: &[String]) -> Result<(), Vec<Diagnostic>> {
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument == "--" {
                self.files.extend(rest.by_ref().cloned());
            } else if let Some(long) = argument.strip_prefix("--") {
                self.long(argument, long, &mut rest)?;
            } else if let Some(short) = argument.strip_prefix('-').filter(|it| !it.is_empty()) {
                self.short(argument, short, &mut rest)?;
            } else {
                self.files.push(argument.clone());
            }
        }
        Ok(())
    }

    fn long<'a>(
        &mut self,
        argument: &str,
        long: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), Vec<Diagnostic>> {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        let option = find_long(name).map_err(|message| wrong(argument, message))?;
        let value = match (option.argument, value) {
            (Argument::None, Some(_)) => {
                return Err(wrong(argument, format!("--{} takes no value", option.long)));
            }
            (Argument::Required, None) => rest.next().cloned().ok_or_else(|| {
                wrong(argument, format!("--{} needs a value: {}", option.long, option.value))
            })?,
            (_, value) => value.unwrap_or_default(),
        };
        self.options.push((option, value, argument.to_owned()));
        Ok(())
    }

    /// Letters that may stand together; the first that takes a value takes what is left.
    fn short<'a>(
        &mut self,
        argument: &str,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), Vec<Diagnostic>> {
        for (index, letter) in letters.char_indices() {
            let known = OPTIONS.iter().find(|option| option.short == Some(letter));
            let option = known.ok_or_else(|| {
                wrong(argument, format!("there is no option -{letter}; see --help"))
            })?;
            if option.argument != Argument::Required {
                self.options.push((option, String::new(), format!("-{letter}")));
                continue;
            }
            let joined = letters.get(index + letter.len_utf8()..).filter(|it| !it.is_empty());
            let value = match joined {
                Some(joined) => joined.to_owned(),
                None => rest.next().cloned().ok_or_else(|| {
                    wrong(argument, format!("-{letter} needs a value: {}", option.value))
                })?,
            };
            self.options.push((option, value, argument.to_owned()));
            break;
        }
        Ok(())
    }
}

/// An option by its name, or by a beginning that only one has.
fn find_long(name: &str) -> Result<&'static CommandOption, String> {
    if let Some(exact) = OPTIONS.iter().find(|option| option.long == name) {
        return Ok(exact);
    }
    let begins = |option: &&CommandOption| !name.is_empty() && option.long.starts_with(name);
    let mut candidates = OPTIONS.iter().filter(begins);
    match (candidates.next(), candidates.next()) {
        (Some(only), None) => Ok(only),
        (Some(one), Some(other)) => {
            Err(format!("--{name} may be --{} or --{}", one.long, other.long))
        }
        (None, _) => {
            let known: Vec<&str> = OPTIONS.iter().map(|option| option.long).collect();
            Err(match closest(name, &known) {
                Some(closest) => format!("there is no option --{name}; did you mean --{closest}?"),
                None => format!("there is no option --{name}; see --help"),
            })
        }
    }
}

fn wrong(argument: &str, message: String) -> Vec<Diagnostic> {
    vec![Origin { written: argument.to_owned(), ..Origin::default() }.diagnostic(message, None)]
}

/// The help.
#[must_use]
pub fn usage(dialect: Dialect) -> String {
    let name = dialect.name();
    let mut text = format!(
        "Usage: {name} [OPTIONS] [PEM]...\n\n\
         kettle in the place of {name}: it takes its options and its configuration file. The same as a\n\
         kettle.toml: kettle import {name} FILE\n\nOptions:\n"
    );
    for option in OPTIONS {
        let short = option.short.map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let value = match option.argument {
            Argument::None => String::new(),
            Argument::Optional => format!("[={}]", option.value),
            Argument::Required => format!("={}", option.value),
        };
        let long = format!("--{}{value}", option.long);
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {short}{long:<34} {}", option.help);
    }
    text
}
