//! The dashboard and the alerts against a real kettle, with a real Prometheus between them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use serde_json::Value;

use super::*;

fn packaging(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name)
}

/// Guests have the programs and not the repository.
fn has_packaging() -> bool {
    let is_there = packaging("").is_dir();
    if !is_there {
        skip("there is no repository here");
    }
    is_there
}

fn dashboard() -> Value {
    let text = std::fs::read_to_string(packaging("grafana/kettle.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The queries of a dashboard, as its user's choices and Grafana fill them in.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets
        .map(|target| {
            let query = target["expr"].as_str().unwrap();
            query.replace("$instance", ".*").replace("$__rate_interval", "1m")
        })
        .collect()
}

/// A kettle with every kind of counter, and where it tells them, if that is wanted.
fn kettle_with_metrics(is_wanted: bool) -> Option<(Kettle, SocketAddr)> {
    if !is_wanted {
        return None;
    }
    let listen = unused_address();
    let setup = Setup::default()
        .file("www/a", "content")
        .file("store/seed", "")
        .listener("http2 = true")
        .more(
            "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\ncache = { store = \"main\" }\n",
        )
        .more("[[cache]]\nname = \"main\"\ndirectory = \"store\"\n")
        .listener("kind = \"tls\"\nbackend = \"app\"")
        .more("[[backend]]\nname = \"app\"\n[[backend.server]]\naddress = \"127.0.0.1:1\"")
        .metrics(listen);
    let kettle = Kettle::start(setup);
    drop(kettle.curl(&[], "/a").succeed());
    Some((kettle, listen))
}

/// The labels of each metric, as the manual has them.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let manual = std::fs::read_to_string(packaging("../docs/watching.md")).unwrap();
    let words = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let rows = manual.lines().skip_while(|line| *line != "## Metrics");
    let rows = rows.take_while(|line| *line != "## Limits");
    let cells = rows.map(|row| row.split('|').collect::<Vec<_>>());
    let rows = cells.filter(|cells| cells.len() == 6);
    rows.flat_map(|cells| {
        let labels: BTreeSet<String> = words(cells[3]).into_iter().collect();
        words(cells[1]).into_iter().map(move |name| (format!("kettle_{name}"), labels.clone()))
    })
    .collect()
}

/// The labels of a query besides those of an origin: it chooses and adds up by them.
fn labels(query: &str) -> BTreeSet<&str> {
    let chosen = query.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let chosen = chosen.flat_map(|list| list.split(',')).filter_map(|one| one.split('=').next());
    let by = query.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
    let by = by.flat_map(|list| list.split(", "));
    chosen.chain(by).filter(|label| !["instance", "job", "le"].contains(label)).collect()
}

#[test]
fn every_metric_is_in_the_manual_and_every_label_that_is_charted_too() {
    let Some((_kettle, listen)) = kettle_with_metrics(has_packaging()) else { return };
    let documented = documented();
    let scrape = scrape(listen);
    for name in scrape.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()) {
        assert!(documented.contains_key(name), "{name} is not in docs/watching.md");
    }
    for sample in scrape.lines().filter(|line| line.contains('{')) {
        let (name, _) = sample.split_once('{').unwrap();
        let name = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|part| name.strip_suffix(part))
            .unwrap_or(name);
        let has = &documented[name];
        let said = labels(sample);
        assert!(said.iter().all(|label| has.contains(*label)), "{sample} has more than {has:?}");
    }
    for query in queries(&dashboard()) {
        let of_query = documented.iter().filter(|(name, _)| {
            query.contains(&format!("{name}{{")) || query.contains(&format!("{name}_bucket"))
        });
        let known: BTreeSet<&str> =
            of_query.flat_map(|(_, labels)| labels).map(String::as_str).collect();
        assert!(labels(&query).is_subset(&known), "{query}: {known:?}");
    }
}

/// The names in a scrape, those of a histogram's parts among them.
fn names(scrape: &str) -> BTreeSet<String> {
    let types = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types
        .flat_map(|(name, kind)| match kind {
            "histogram" => {
                ["_bucket", "_sum", "_count"].map(|part| format!("{name}{part}")).to_vec()
            }
            _ => vec![name.to_owned()],
        })
        .collect()
}

#[test]
fn every_metric_that_is_charted_or_alerted_on_exists() {
    let Some((_kettle, listen)) = kettle_with_metrics(has_packaging()) else { return };
    let scrape = scrape(listen);
    let mut there = names(&scrape);
    // Only where root started it, or where certificates are fetched.
    for name in ["keeper_up", "acme_issuer_up", "acme_next_attempt_seconds"] {
        there.insert(format!("kettle_{name}"));
    }
    let rules = std::fs::read_to_string(packaging("prometheus/kettle.rules.yml")).unwrap();
    let dashboard = queries(&dashboard()).join("\n");
    let mut used = 0;
    for text in [&rules, &dashboard] {
        for (at, _) in text.match_indices("kettle_") {
            let rest = &text[at..];
            let is_of_name = |c: char| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit();
            let end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
            let name = &rest[..end];
            assert!(there.contains(name), "{name} is in no scrape: {there:?}");
            used += 1;
        }
    }
    assert!(used > 30, "{used}");
}

#[test]
fn panels_of_the_dashboard_are_apart_and_have_queries() {
    if !has_packaging() {
        return;
    }
    let dashboard = dashboard();
    let mut ids = BTreeSet::new();
    let mut places = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let place = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{panel}");
        assert!(places.insert((place("x"), place("y"))), "{panel}");
        let is_row = panel["type"] == "row";
        assert!(is_row || !panel["targets"].as_array().unwrap().is_empty(), "{panel}");
    }
    assert!(ids.len() > 20);
}

#[test]
fn alerts_pass_their_own_tests() {
    if !has_packaging() || !has("promtool") {
        return;
    }
    let rules = packaging("prometheus/kettle.rules.yml");
    drop(Tool::new("promtool").args(["check", "rules"]).args([rules]).succeed());
    let tests = packaging("prometheus/kettle.rules.test.yml");
    drop(Tool::new("promtool").args(["test", "rules"]).args([tests]).succeed());
}

#[test]
fn promtool_finds_no_fault_in_a_scrape() {
    let Some((_kettle, listen)) = kettle_with_metrics(has("promtool")) else { return };
    let ended = Tool::new("promtool").args(["check", "metrics"]).input(scrape(listen)).output();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{}{}", ended.text(), ended.stderr);
}

#[test]
fn prometheus_scrapes_kettle_and_answers_the_dashboard() {
    let is_measured = has_packaging() && has("prometheus");
    let Some((_kettle, listen)) = kettle_with_metrics(is_measured) else { return };
    let folder = tempfile::tempdir().unwrap();
    let rules = packaging("prometheus/kettle.rules.yml");
    let config = format!(
        "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [\"{}\"]\n\
         scrape_configs: [{{ job_name: kettle, static_configs: [{{ targets: [\"{listen}\"] }}] }}]\n",
        rules.display()
    );
    std::fs::write(folder.path().join("prometheus.yml"), config).unwrap();
    let address = unused_address();
    // It ends when it is dropped.
    let prometheus = Tool::new("prometheus")
        .args([format!("--web.listen-address={address}")])
        .args([format!("--config.file={}/prometheus.yml", folder.path().display())])
        .args([format!("--storage.tsdb.path={}/data", folder.path().display())])
        .start();
    prometheus.stderr.wait_for("Server is ready to receive web requests");
    let ask = |query: &str| -> Value {
        let url = format!("http://{address}/api/v1/query");
        let query = format!("query={query}");
        let said = Tool::new("curl").args(["-sS", &url, "--data-urlencode", &query]).succeed();
        serde_json::from_str(&said).unwrap()
    };
    let deadline = Instant::now() + patience();
    while ask("kettle_responses_total{job=\"kettle\"}")["data"]["result"][0]["value"][1] != "1" {
        assert!(Instant::now() < deadline, "{}", prometheus.stderr.text());
    }
    assert_eq!(ask("up{job=\"kettle\"}")["data"]["result"][0]["value"][1], "1");
    for query in queries(&dashboard()) {
        let answer = ask(&query);
        assert_eq!(answer["status"], "success", "{query}: {answer}");
    }
}
