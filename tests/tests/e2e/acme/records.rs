//! `dns-persist-01`: records that the operator writes once.

use super::failures::{behind_front, failure};
use super::*;

const PERSIST: &str = "challenges = [\"dns-persist-01\"]";

/// The lines that the operator is to write.
fn lines(kettle: &Kettle) -> Vec<String> {
    let said = kettle.ctl(&["acme", "dns-records"]).succeed();
    let mut lines = said.lines().map(str::to_owned);
    let head = lines.next().unwrap();
    assert!(head.starts_with("; as long as such a record stays, whoever has the key"), "{head}");
    lines.collect()
}

/// Writes a line where pebble looks.
fn write(pebble: &Pebble, line: &str) {
    let (name, value) = line.split_once(" IN TXT ").unwrap();
    let body = format!("{{\"host\": \"{name}\", \"value\": {value}}}");
    let curl = Tool::new("curl").args(["--silent", "--show-error", "--fail", "--data"]);
    let _ = curl.args([body, format!("{}/set-txt", pebble.records_url())]).succeed();
}

#[test]
fn records_that_stay_are_printed_and_validate_names_with_a_star() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let names = "[\"*.site.example\", \"site.example\"]";
    let acme = format!("acme = {{ {PERSIST} }}\nroute = [{{ root = \"www\" }}]");
    let other = format!("[[site]]\nnames = {names}\n{acme}\n");
    let kettle = Kettle::start(fetching(&setup, PERSIST).more(&other));
    // The authority says itself what it does not find.
    let said = failure(&kettle);
    assert!(said.contains("localhost by dns-persist-01: No TXT records found"), "{said}");
    assert!(said.contains("`kettle ctl acme dns-records` prints the record for it"), "{said}");
    kettle.messages().wait_for("no certificate for *.site.example: ");
    let lines = lines(&kettle);
    let said = kettle.messages().text();
    let (_, account) = said.split_once("there is an account at pebble now: ").unwrap();
    let account = account.split(['"', '\n']).next().unwrap();
    let line = |name: &str, policy: &str| {
        format!(
            "_validation-persist.{name}. IN TXT \"pebble.letsencrypt.org; accounturi={account}{policy}\""
        )
    };
    assert_eq!(lines, [line("localhost", ""), line("site.example", "; policy=wildcard")]);
    let json = kettle.ctl(&["acme", "dns-records", "--json"]).succeed();
    assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), lines);

    lines.iter().for_each(|line| write(&pebble, line));
    for name in ["localhost", "site.example"] {
        // As long as its authority is asked for something, it is refused.
        let renew = || kettle.ctl(&["acme", "renew", name]).output().status.success();
        wait_until("it may be renewed", renew);
    }
    wait_until_served(&kettle, &pebble);
    kettle
        .messages()
        .wait_for("certificate of *.site.example is there: pebble, 90 days, dns-persist-01");
    // Nothing is written for the next one.
    let before = current(&kettle);
    let renew = || kettle.ctl(&["acme", "renew", "localhost"]).output().status.success();
    wait_until("it may be renewed", renew);
    wait_until("it is renewed", || current(&kettle) != before);
    assert!(get(&kettle, &pebble).output().status.success());
    // A record is for one account.
    let said = kettle.ctl(&["acme", "renew", "localhost", "--rehearse"]).output();
    assert!(
        !said.status.success() && said.stderr.contains("is for one account"),
        "{}",
        said.stderr
    );
}

#[test]
fn an_authority_that_speaks_of_records_otherwise_is_not_believed() {
    // As a later draft has it.
    let body = r#"{"status": "pending", "identifier": {"type": "dns", "value": "localhost"}, "challenges":
        [{"type": "dns-persist-01", "url": "https://localhost/", "status": "pending", "issuerDomainNames": ["a.example"]}]}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let rule = move |asked: &str| match asked.starts_with("POST /authZ/") {
        true => Act::Say(answer.clone()),
        false => Act::Pass,
    };
    let Some((_pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else { return };
    let kettle = Kettle::start(setup.site(PERSIST));
    let said = failure(&kettle);
    assert!(said.contains("as kettle does not know it: its `issuer-domain-names`"), "{said}");
    assert_eq!(front.asked("POST /chalZ/"), 0);
    let lines = lines(&kettle);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("; localhost: `pebble` has not said yet"), "{}", lines[0]);
}
