//! The options that a scenario heeds. An option that nobody heeds is refused: a figure that was asked for and left out would be
//! taken for measured.

use super::error::BenchError;
use super::options::{DownloadClient, Options};
use super::{SCENARIOS, Scenario};

/// The number of values of an option a scenario takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    One,
    /// Each is measured.
    All,
}

/// The options of which all scenarios take one, unless they compare it.
const USUAL: &[&str] = &["--suite", "--group", "--key", "--workers"];

/// Refuses options that none of these scenarios heeds, more values than one of them takes, and requests at once without HTTP/2.
pub fn check(scenarios: &[&Scenario], options: &Options) -> Result<(), BenchError> {
    options.http.check().map_err(BenchError::Refused)?;
    for (option, values) in named(options).into_iter().filter(|(_, values)| *values > 0) {
        let of = |scenario: &Scenario| takes(scenario, option);
        let names = |of: &mut dyn Iterator<Item = &Scenario>| {
            of.map(|scenario| scenario.name).collect::<Vec<_>>().join(", ")
        };
        let asked = names(&mut scenarios.iter().copied());
        if scenarios.iter().all(|scenario| of(scenario).is_none()) {
            let heeding = names(&mut SCENARIOS.iter().filter(|it| of(it).is_some()));
            return Err(BenchError::Refused(format!(
                "{option} says nothing to {asked}; it is for {heeding}"
            )));
        }
        let one = names(&mut scenarios.iter().copied().filter(|it| of(it) == Some(Takes::One)));
        if values > 1 && !one.is_empty() {
            return Err(BenchError::Refused(format!(
                "{one}: one value of {option} is taken, and here are {values}; make a run for each"
            )));
        }
    }
    Ok(())
}

fn takes(scenario: &Scenario, option: &str) -> Option<Takes> {
    let own = scenario.heeds.iter().find(|(name, _)| *name == option).map(|(_, takes)| *takes);
    own.or_else(|| USUAL.contains(&option).then_some(Takes::One))
}

/// The number of values that were named for each.
fn named(options: &Options) -> [(&'static str, usize); 10] {
    fn count<T>(list: &Option<Vec<T>>) -> usize {
        list.as_ref().map_or(0, Vec::len)
    }
    [
        ("--sizes", count(&options.sizes)),
        ("--suite", count(&options.suites)),
        ("--group", count(&options.groups)),
        ("--key", count(&options.keys)),
        ("--resume-by", count(&options.resume)),
        ("--per-session", count(&options.per_session)),
        ("--connections", count(&options.connections)),
        ("--workers", count(&options.workers)),
        ("--throughput", count(&options.throughputs)),
        ("--client", usize::from(options.client != DownloadClient::Own)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::find;
    use crate::scenario::options::Http;

    fn refusal(scenario: &str, options: &Options) -> Option<String> {
        let scenario = find(scenario).expect("a scenario");
        check(&[scenario], options).err().map(|error| error.to_string())
    }

    #[test]
    fn what_nobody_heeds_is_refused_with_those_who_do() {
        let options = Options { per_session: Some(vec![4]), ..Options::default() };
        let said = refusal("web-sizes", &options);
        assert_eq!(
            said.as_deref(),
            Some("--per-session says nothing to web-sizes; it is for tps-ramp")
        );
        assert_eq!(refusal("tps-ramp", &options), None);
        let both = [find("web-sizes"), find("tps-ramp")].map(|it| it.expect("a scenario"));
        assert!(check(&both, &options).is_ok());
    }

    #[test]
    fn more_values_than_are_taken_are_refused() {
        let two = Options { connections: Some(vec![500, 6000]), ..Options::default() };
        assert!(refusal("web-sizes", &two).is_some_and(|it| it.contains("here are 2")));
        assert_eq!(refusal("idle-memory", &two), None);
        let keys = Options { workers: Some(vec![1, 2]), ..Options::default() };
        assert!(refusal("ciphers", &keys).is_some());
        assert_eq!(refusal("tps-ramp", &keys), None);
    }

    #[test]
    fn those_who_take_one_value_are_named_beside_others_who_take_all() {
        let two = Options { connections: Some(vec![500, 6000]), ..Options::default() };
        let asked = ["web-sizes", "idle-memory"].map(|it| find(it).expect("a scenario"));
        let said = check(&asked, &two).err().map(|error| error.to_string());
        assert_eq!(
            said.as_deref(),
            Some(
                "web-sizes: one value of --connections is taken, and here are 2; make a run for each"
            )
        );
        // The other one is silent on it.
        let twice = Options { per_session: Some(vec![4, 8]), ..Options::default() };
        let asked = ["web-sizes", "tps-ramp"].map(|it| find(it).expect("a scenario"));
        assert!(check(&asked, &twice).is_ok());
    }

    #[test]
    fn requests_at_once_without_http_2_are_refused() {
        let asked = |http, at_once| Options { http: Http { http, at_once }, ..Options::default() };
        let said = refusal("web-sizes", &asked(1, 100));
        assert_eq!(said.as_deref(), Some("--at-once 100 is for HTTP/2; add --http 2"));
        assert_eq!(refusal("web-sizes", &asked(1, 1)), None);
        assert_eq!(refusal("web-sizes", &asked(2, 100)), None);
    }

    #[test]
    fn what_each_scenario_says_it_heeds_is_an_option() {
        let options = named(&Options::default()).map(|(name, _)| name);
        for (name, _) in SCENARIOS.iter().flat_map(|scenario| scenario.heeds) {
            assert!(options.contains(name), "{name}");
        }
    }
}
