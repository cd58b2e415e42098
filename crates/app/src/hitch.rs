//! `kettle hitch` and `kettle stud`, or this program under one of these names: their options, their configuration file,
//! their exit codes.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use kettle_config::{Config, Diagnostic, Origin};
use kettle_import::Imported;
use kettle_import::hitch::{Asked, Dialect, command_line, usage};
use kettle_supervisor::{Loader, prepare};

use crate::daemon::{Background, has_left, leave_terminal};
use crate::import::ThisMachine;
use crate::logging::{self, Syslog};
use crate::output::{fail, fail_with, print, print_line, say, warn_of};
use crate::run;

/// Whose words these are, with those that are its arguments, if it is one of the two.
pub(crate) fn is_asked_for(words: &[OsString]) -> Option<(Dialect, &[OsString])> {
    let of = |name: &str| [Dialect::Hitch, Dialect::Stud].into_iter().find(|it| it.name() == name);
    let called = Path::new(words.first()?).file_name()?.to_str()?;
    match of(called) {
        Some(dialect) => Some((dialect, words.get(1..)?)),
        None => Some((of(words.get(1)?.to_str()?)?, words.get(2..)?)),
    }
}

/// Does what hitch does with these arguments.
pub(crate) fn hitch(dialect: Dialect, words: &[OsString], arguments: &[OsString]) -> ExitCode {
    let name = dialect.name();
    let texts = arguments.iter().map(|argument| argument.to_str().map(str::to_owned));
    let Some(arguments) = texts.collect::<Option<Vec<String>>>() else {
        return fail("an argument is not UTF-8");
    };
    if arguments.is_empty() {
        print(usage(dialect));
        return ExitCode::FAILURE;
    }
    let imported = match command_line(dialect, &arguments, &ThisMachine) {
        Err(diagnostics) => return fail_with(&diagnostics),
        Ok(Asked::Help) => {
            print(usage(dialect));
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Version) => {
            print_line(format_args!("{name} as of kettle {}", env!("CARGO_PKG_VERSION")));
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Test(imported)) => return test(name, &imported),
        Ok(Asked::Run(imported)) => imported,
    };
    if imported.process.is_daemon && !has_left() {
        return leave_terminal(words);
    }
    run::holding_commands(|| match start(dialect, *imported, arguments) {
        Ok(code) | Err(code) => code,
    })
}

/// Loads all that a start loads.
fn test(name: &str, imported: &Imported) -> ExitCode {
    let outcome = imported.config().and_then(prepare::try_out);
    match outcome {
        Ok(warnings) => {
            warnings.iter().for_each(warn_of);
            say(format_args!("{name} configuration looks ok."));
            ExitCode::SUCCESS
        }
        Err(diagnostics) => fail_with(&diagnostics),
    }
}

fn start(
    dialect: Dialect,
    imported: Imported,
    arguments: Vec<String>,
) -> Result<ExitCode, ExitCode> {
    let is_root = rustix::process::geteuid().is_root();
    let mut config = without_user_unless(is_root, imported.config().map_err(|it| fail_with(&it))?);
    config.removed_at_end.extend(imported.process.pid_file.clone());
    if is_root && imported.process.refuses_root {
        return Err(fail(
            "hitch does not serve as root; name a user with --user=USER or user = \"…\"",
        ));
    }
    let process = &imported.process;
    let syslog = process.syslog.map(|facility| Syslog::of(dialect.name(), facility));
    logging::start_with_warnings(&config.log.level, syslog);
    let owner = prepare::account(&config).map_err(|it| fail_with(&it))?.map(|it| it.uid());
    let background = Background::begin(process.log_file.as_deref(), owner)
        .map_err(|error| fail(format_args!("the file for messages cannot be opened: {error}")))?;
    let pid_file = process.pid_file.as_deref().map(|path| background.pid_file(path)).transpose();
    let pid_file =
        pid_file.map_err(|error| fail(format_args!("the pidfile cannot be written: {error}")))?;
    let loader: Loader = Arc::new(move || load(dialect, &arguments, is_root));
    let supervisor = run::start(config, Some(loader))?;
    if background.has_messages() {
        // They go to the file, and whoever starts this does not look there.
        supervisor.warnings().iter().for_each(warn_of);
        background.divert_messages();
    }
    let code = run::run_to_end(supervisor, |supervisor| {
        run::log_addresses(supervisor);
        background.settle();
    });
    drop(pid_file);
    Ok(code)
}

/// Loads what a reload reads: the same command line, and its file as it is now.
fn load(dialect: Dialect, arguments: &[String], is_root: bool) -> Result<Config, Vec<Diagnostic>> {
    match command_line(dialect, arguments, &ThisMachine)? {
        Asked::Run(imported) => Ok(without_user_unless(is_root, imported.config()?)),
        // The arguments are those that began to serve.
        Asked::Test(_) | Asked::Help | Asked::Version => Err(Vec::new()),
    }
}

/// hitch changes its user only as root, and says nothing where it is not. stud stays root if nobody says otherwise.
fn without_user_unless(is_root: bool, mut config: Config) -> Config {
    if !is_root {
        (config.server.user, config.server.group) = (None, None);
    } else if config.server.user.is_none() {
        let help = Some("name a user with --user=USER or user = \"…\"".to_owned());
        let warning = Origin::default().diagnostic("serving as root", help);
        config.not_carried_over.push(Diagnostic { path: config.path.clone(), ..warning });
    }
    config
}
