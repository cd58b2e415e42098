//! Scripts that complete the commands and options of a program in a shell.

use std::fs;
use std::io;
use std::path::Path;

use clap_complete::Shell;

/// The completions of `program`, whose command line is `command`.
#[must_use]
pub fn completions(shell: Shell, command: &clap::Command, program: &str) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command.clone(), program, &mut text);
    text
}

/// Writes the completions of `program` for bash, zsh and fish, under the names these look for.
///
/// # Errors
///
/// A file cannot be written.
pub fn write_completions(command: &clap::Command, program: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (shell, name) in [
        (Shell::Bash, program.to_owned()),
        (Shell::Zsh, format!("_{program}")),
        (Shell::Fish, format!("{program}.fish")),
    ] {
        fs::write(folder.join(name), completions(shell, command, program))?;
    }
    Ok(())
}
