//! `kettle bench list`: the comparisons, and the servers on this machine.

use std::fmt::Write;
use std::process::ExitCode;

use crate::command::output::print;
use crate::peers;
use crate::peers::subject::Program;
use crate::scenario::SCENARIOS;
use crate::word::Word;

pub(crate) fn list() -> Result<ExitCode, String> {
    let mut text = format!("Comparisons:\n{}\nServers on this machine:\n", names());
    for (program, name) in Program::ALL {
        let found = match peers::find(*program) {
            Ok(found) => found.version,
            Err(missing) => format!("– {missing}"),
        };
        let _ = writeln!(text, "  {name:<12} {found}");
    }
    let kernel = peers::kernel_obstacle().map_or_else(
        || {
            "this kernel encrypts; the paths kernel-write, kernel-sendfile and kernel-splice can be measured"
                .to_owned()
        },
        |why| format!("– {why}; `kettle doctor` says what would help"),
    );
    let _ = writeln!(
        text,
        "  {:<12} {kernel}\n\nkettle bench run NAME… measures; --help has examples.",
        "kernel TLS"
    );
    print(text);
    Ok(ExitCode::SUCCESS)
}

/// A line for each comparison, and its question.
pub(crate) fn names() -> String {
    let mut text = String::new();
    for scenario in SCENARIOS {
        let _ = writeln!(text, "  {:<12} {}", scenario.name, scenario.question);
    }
    text
}
