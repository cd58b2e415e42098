//! The manual pages of a command and of those below it, from the declaration of the command line.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap_mangen::Man;

use crate::markdown::escaped;

/// Writes the pages of a program into `folder`, but for the commands whose pages come from
/// `elsewhere`. `date` and `source` stand below each page.
///
/// # Errors
///
/// A file cannot be written.
pub fn write_pages(
    command: clap::Command,
    folder: &Path,
    date: &str,
    source: &str,
    elsewhere: &[&str],
) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_below(&command, folder, (date, source), elsewhere)
}

fn write_below(
    command: &clap::Command,
    folder: &Path,
    signature: (&str, &str),
    elsewhere: &[&str],
) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    if !elsewhere.contains(&command.get_name()) {
        fs::write(folder.join(format!("{name}.1")), page(command, signature)?)?;
    }
    let mut own = command.get_subcommands().filter(|it| !it.is_hide_set());
    own.try_for_each(|own| write_below(own, folder, signature, elsewhere))
}

fn page(command: &clap::Command, (date, source): (&str, &str)) -> io::Result<String> {
    let man = Man::new(command.clone()).date(date).source(source).manual("kettle manual");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(help) = command.get_after_help() {
        write_after_help(&mut page, &help.to_string())?;
    }
    // Empty paragraphs around the words that an argument takes: roff has its own.
    Ok(String::from_utf8_lossy(&page).replace("\n.br\n\n.br\n", "\n.sp\n"))
}

/// Examples stand in columns, which a filled paragraph would lose.
fn write_after_help(page: &mut Vec<u8>, help: &str) -> io::Result<()> {
    let (title, text) = match help.split_once(":\n") {
        Some(("Examples", text)) => ("EXAMPLES", text),
        _ => ("NOTES", help),
    };
    write!(page, ".SH {title}\n.EX\n")?;
    for line in text.lines() {
        let line = escaped(line);
        let guard = if line.starts_with('.') { "\\&" } else { "" };
        writeln!(page, "{guard}{line}")?;
    }
    writeln!(page, ".EE")
}
