use kettle_config::{ClientAuthMode, Config};
use proptest::prelude::*;

use super::*;
use crate::cases::{Importer, hold, listeners, names_of_servers};
use crate::files_in_memory::Files;

fn from(text: &str) -> Result<Imported, Vec<Diagnostic>> {
    import_file(Path::new("/etc/stunnel.conf"), &Files::with("/etc/stunnel.conf", text))
}

#[test]
fn services_are_those_of_the_cases() {
    let importer = Importer {
        server: str::to_owned,
        import: from,
        views: &[("listeners:", listeners), ("shows:", names_of_servers), ("asks:", asked)],
    };
    hold("stunnel.txt", &importer);
}

/// Returns how clients are asked for certificates, by certificate that is shown.
fn asked(config: &Config) -> String {
    let one = |auth: &kettle_config::ClientAuth| {
        let mode = if auth.mode == ClientAuthMode::Required { "required" } else { "optional" };
        format!("{mode}{}", if auth.pinned { " pinned" } else { "" })
    };
    config.client_auths().map(one).collect::<Vec<_>>().join(", ")
}

proptest! {
    #[test]
    fn no_text_makes_it_fail_without_a_word(
        options in prop::collection::vec((prop::sample::select(vocabulary::Term::names()), "yes|1|[ -~]{0,9}"), 0..6)
    ) {
        let lines = options.iter().map(|(name, value)| format!("{name} = {value}\n"));
        let text = format!("[a]\naccept = 1\nconnect = 2\ncert = /c\n{}", lines.collect::<String>());
        match from(&text) {
            Ok(made) => _ = made.config(),
            Err(diagnostics) => prop_assert!(!diagnostics.is_empty()),
        }
    }
}
