//! An operator's nginx.conf as it is: made a template for nginx, and a configuration for kettle.

use std::io;
use std::path::Path;

use super::config::has_placeholder;
use super::find::{Found, find};
use super::subject::{self, Program};
use crate::word::Word;

/// An nginx.conf as it is used, made a template.
pub struct ImportedNginx {
    pub template: String,
    /// The place where nginx encrypts by it, if the kernel can.
    pub path: subject::SubjectPath,
}

impl ImportedNginx {
    /// `None` for a file that is a template already.
    ///
    /// # Errors
    /// A sentence for the user: the file cannot be read, kettle is not to be found, or kettle cannot import it.
    pub fn of(file: &Path) -> Result<Option<Self>, String> {
        let unreadable = |error: io::Error| format!("cannot read {}: {error}", file.display());
        let text = std::fs::read_to_string(file).map_err(unreadable)?;
        if has_placeholder(&text) {
            return Ok(None);
        }
        let kettle = find(Program::Kettle)?;
        let template = import(&kettle, file, &["--for-bench"])?;
        let path = path_of(&template);
        Ok(Some(Self { template, path }))
    }
}

/// Returns what `kettle import nginx` prints for a file.
///
/// # Errors
/// A sentence for the user: kettle cannot be run, refuses the file, or prints what is not UTF-8.
pub fn import(kettle: &Found, file: &Path, options: &[&str]) -> Result<String, String> {
    let mut command = kettle.command();
    let output = command.args(["import", "nginx"]).arg(file).args(options).output();
    let output =
        output.map_err(|error| format!("cannot run {}: {error}", kettle.executable.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("kettle cannot take {} over:\n{}", file.display(), said.trim()));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("kettle printed no text: {error}"))
}

/// The last word counts: what stands deeper stands further down.
fn path_of(template: &str) -> subject::SubjectPath {
    let lines = || template.lines().map(|line| line.trim().trim_end_matches(';'));
    let options = lines().filter_map(|line| line.strip_prefix("ssl_conf_command Options "));
    let mut words = options.flat_map(|options| options.split([',', ' ', '"']));
    let is_kernel = words.rfind(|word| word.ends_with("KTLS")) == Some("KTLS");
    let sends_files = lines().rev().find_map(|line| line.strip_prefix("sendfile "));
    match (is_kernel, sends_files) {
        (false, _) => subject::SubjectPath::User,
        (true, Some("on")) => subject::SubjectPath::KernelSendfile,
        (true, _) => subject::SubjectPath::KernelWrite,
    }
}

/// An imported configuration with the path that is measured in each listener, and without the control socket, which a kettle
/// that serves on this machine may have.
pub fn on_path(imported: &str, path: subject::SubjectPath) -> String {
    let mut text = String::with_capacity(imported.len());
    let mut table = "";
    for line in imported.lines() {
        if line.starts_with('[') {
            table = line;
        }
        let is_path = table == "[[listener]]" && line.starts_with("path = ");
        let is_control = table == "[admin]" && !line.is_empty();
        if !is_path && !is_control {
            text.push_str(line);
            text.push('\n');
        }
        if line == "[[listener]]" {
            text.push_str(&format!("path = \"{}\"\n", path.word()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::subject::SubjectPath::{Auto, KernelSendfile, KernelWrite, User};

    #[test]
    fn what_is_said_last_decides_the_path() {
        for (text, path) in [
            ("", User),
            ("sendfile on;", User),
            ("ssl_conf_command Options KTLS;", KernelWrite),
            ("sendfile on;\n  ssl_conf_command Options KTLS;", KernelSendfile),
            ("sendfile on;\nssl_conf_command Options \"NoRenegotiation KTLS\";", KernelSendfile),
            ("ssl_conf_command Options KTLS;\nsendfile on;\n    sendfile off;", KernelWrite),
            ("ssl_conf_command Options KTLS;\nssl_conf_command Options -KTLS;", User),
        ] {
            assert_eq!(path_of(text), path, "{text}");
        }
    }

    #[test]
    fn each_listener_gets_the_path_once_and_the_control_socket_goes() {
        let imported = "[admin]\nsocket = \"s\"\n[server]\nworkers = 1\n\n[[listener]]\naddress = \"a\"\npath = \"user\"\n\n[[site]]\npath = \"user\"\n";
        let wanted = "[server]\nworkers = 1\n\n[[listener]]\npath = \"auto\"\naddress = \"a\"\n\n[[site]]\npath = \"user\"\n";
        assert_eq!(on_path(imported, Auto), wanted);
    }

    #[test]
    fn a_template_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, "listen @ADDRESS@;").unwrap();
        assert!(ImportedNginx::of(&file).unwrap().is_none());
        let missing = ImportedNginx::of(&folder.path().join("none")).err().unwrap();
        assert!(missing.contains("cannot read"), "{missing}");
    }
}
