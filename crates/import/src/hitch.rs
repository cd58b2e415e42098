//! hitch and stud: `hitch.conf`, `stud.conf` and the command lines of both.
//!
//! Source: hitch.conf(5), hitch(8) and stud(8). File and command line become the same [`Statement`]s, in the order in
//! which the later one wins; [`model`] makes one picture of them, and `write` a kettle.toml.

mod arguments;
mod file;
mod model;
mod vocabulary;
mod write;

use std::path::Path;

use kettle_config::{Diagnostic, Origin};

use crate::{Imported, Surroundings};
pub use arguments::{Asked, usage};

/// Whose words are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// hitch, from 1.0 on.
    Hitch,
    /// stud, where `write-proxy` is version 1 of the PROXY protocol.
    Stud,
}

impl Dialect {
    /// Returns the name of the program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hitch => "hitch",
            Self::Stud => "stud",
        }
    }
}

/// The program that runs the text that is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runner {
    /// The packaged unit, `kettle run` with a file of that text.
    Unit,
    /// `kettle hitch` or `kettle stud` itself, which has no control socket.
    Program,
}

/// Something that a file or a command line says.
#[derive(Clone, Debug)]
struct Statement {
    key: &'static str,
    value: Value,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Value {
    Text(String),
    /// `{ … }`.
    Block(Vec<Statement>),
}

/// Imports a configuration file.
///
/// # Errors
/// Every mistake in it.
pub fn import_file(
    dialect: Dialect,
    path: &Path,
    surroundings: &dyn Surroundings,
) -> Result<Imported, Vec<Diagnostic>> {
    let statements = file::read(path, surroundings)?;
    let model = model::of(dialect, statements)?;
    write::write(&model, path, surroundings, Runner::Unit)
}

/// Reads a command line, without the program's name, and the file that it names.
///
/// # Errors
/// Every mistake in both.
pub fn command_line(
    dialect: Dialect,
    arguments: &[String],
    surroundings: &dyn Surroundings,
) -> Result<Asked, Vec<Diagnostic>> {
    let line = arguments::read(dialect, arguments, surroundings)?;
    if let Some(asked) = line.asks_for_text {
        return Ok(asked);
    }
    let model = model::of(dialect, line.statements)?;
    let imported = Box::new(write::write(&model, &line.path, surroundings, Runner::Program)?);
    Ok(if line.is_test { Asked::Test(imported) } else { Asked::Run(imported) })
}

#[cfg(test)]
mod tests;
