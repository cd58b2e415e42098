//! The fate of the applications, as a table for a page.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

/// The results of a run, one for each application and front end.
pub struct Results(Vec<Visit>);

#[derive(Deserialize)]
struct Visit {
    application: String,
    name: String,
    front: String,
    #[serde(default)]
    version: String,
    import: Option<Import>,
    steps: BTreeMap<String, String>,
}

/// The words of `kettle import --summary`.
#[derive(Deserialize)]
struct Import {
    carried: String,
    places: String,
    differs: String,
    lost: Vec<String>,
}

impl Results {
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map(Self).map_err(|error| error.to_string())
    }

    /// The table, what failed, and what could not be had.
    pub fn written(&self, missing: &[(String, String)]) -> String {
        let mut out = String::from(HEAD);
        let mut failed = String::new();
        for visit in self.0.iter().filter(|it| it.front == "kettle") {
            let nginx = self.0.iter().find(|it| it.name == visit.name && it.front == "nginx");
            let (places, lost) =
                visit.import.as_ref().map_or(("–".into(), "–".into()), Import::said);
            let _ = write!(out, "| {}, {} | {places} | {lost} |", visit.application, visit.version);
            for step in STEPS {
                let _ = write!(out, " {} |", visit.word(step));
            }
            let behind = nginx.map_or("not tried", Visit::verdict);
            let _ = writeln!(out, " {} | {behind} |", visit.verdict());
        }
        for visit in &self.0 {
            for (step, said) in visit.steps.iter().filter(|(_, said)| said.starts_with("failed")) {
                let said = said.replace('\n', " ");
                let _ = writeln!(failed, "| {} | {} | {step} | {said} |", visit.name, visit.front);
            }
        }
        for (name, why) in missing {
            let why = why.replace('\n', " ");
            let _ = writeln!(failed, "| {name} | – | – | could not be had here: {why} |");
        }
        if !failed.is_empty() {
            let _ = write!(out, "\n{FAILED}{failed}");
        }
        out
    }
}

impl Visit {
    fn word(&self, step: &str) -> &str {
        let said = self.steps.get(step).map_or("–", String::as_str);
        said.split(':').next().unwrap_or(said)
    }

    fn verdict(&self) -> &'static str {
        let is_well = STEPS.iter().all(|step| self.word(step) != "failed");
        if is_well { "passed" } else { "failed" }
    }
}

impl Import {
    fn said(&self) -> (String, String) {
        let Self { carried, places, differs, lost } = self;
        let lost = if lost.is_empty() { "nothing".to_owned() } else { lost.join("; ") };
        (format!("{carried} of {places} places; {differs} directives differ"), lost)
    }
}

const STEPS: &[&str] = &["login", "upload", "download", "live"];
const HEAD: &str = "\
# Applications behind kettle

`cargo xtask applications --write docs/results/applications.md` makes this page ([how](../testing.md#applications)). Each application has the nginx.conf that
its documentation advises. nginx serves it by that file, and kettle by what it imports of it.

| application | imported | lost | login | upload | download | WebSocket, events, failures | behind kettle | behind nginx |
|---|---|---|---|---|---|---|---|---|
";
const FAILED: &str = "\
| what failed | behind | step | why |
|---|---|---|---|
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_behind_kettle_alone_is_told() {
        let text = r#"[
            {"application": "A", "name": "a", "front": "nginx", "version": "1", "steps": {"login": "passed", "live": "–"}},
            {"application": "A", "name": "a", "front": "kettle", "version": "1", "steps": {"login": "failed: 403", "live": "–"},
             "import": {"carried": "1", "places": "2", "differs": "3", "lost": ["`x`"]}}]"#;
        let written = Results::read(text).unwrap().written(&[("b".into(), "no Go".into())]);
        let row = "| A, 1 | 1 of 2 places; 3 directives differ | `x` | failed | – | – | – | failed | passed |\n";
        assert!(written.contains(row), "{written}");
        let end = "|\n| a | kettle | login | failed: 403 |\n| b | – | – | could not be had here: no Go |\n";
        assert!(written.ends_with(end), "{written}");
    }
}
