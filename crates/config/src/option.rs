//! The meaning of an option of a command line that has none of this name: mostly a setting of a kettle.toml, or a word of
//! another server.

use crate::foreign::{advice, called, names};
use crate::nearest::{closest, plain};
use crate::reference::tables_with;

/// The known option of a command line that is most likely meant, without its dashes.
///
/// # Errors
/// None is: what to do instead, if that is known.
pub fn option_advice<'k>(written: &str, known: &[&'k str]) -> Result<&'k str, Option<String>> {
    if let Some(known) = called(written, known) {
        return Ok(known);
    }
    let of_file = |name: &str| {
        let tables = tables_with(name);
        // A route's setting may stand in rarer tables, too: the route is what is meant.
        let table = tables.iter().find(|table| *table == "[[site.route]]").or(tables.first())?;
        Some(format!("it is a setting of a kettle.toml: `{name}` below {table}"))
    };
    let own = plain(written);
    let elsewhere = || names(written).iter().find_map(|name| of_file(name));
    match advice(written).or_else(|| of_file(&own)).or_else(elsewhere) {
        Some(advice) => Err(Some(advice)),
        None => closest(written, known).ok_or(None),
    }
}
