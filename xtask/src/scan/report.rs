//! The findings of the scanners, in a page's worth of lines.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestsslLine {
    /// Which test.
    pub id: String,
    /// From OK to CRITICAL; WARN is a test that did not come to a result.
    pub severity: String,
    /// In words.
    pub text: String,
}

pub struct Scan {
    pub title: &'static str,
    pub findings: Vec<TestsslLine>,
    /// The ciphers on which sslscan could agree.
    pub ciphers: Vec<String>,
    /// Nobody trusts a generated certificate, and its site has no headers.
    pub is_self_signed: bool,
}

impl Scan {
    /// True if there is anything worse than LOW, or a cipher that must not be there.
    pub fn is_failed(&self) -> bool {
        self.findings.iter().any(|finding| self.is_fault(finding))
            || self.ciphers.is_empty()
            || self.ciphers.iter().any(|cipher| !is_modern(cipher))
    }

    fn is_fault(&self, finding: &TestsslLine) -> bool {
        let is_excused = self.is_self_signed
            && SELF_SIGNED.iter().any(|excused| finding.id.starts_with(excused));
        matches!(finding.severity.as_str(), "MEDIUM" | "HIGH" | "CRITICAL" | "FATAL") && !is_excused
    }
}

impl fmt::Display for Scan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for finding in &self.findings {
            *counts.entry(&finding.severity).or_default() += 1;
        }
        let counts: Vec<String> =
            counts.iter().map(|(severity, count)| format!("{severity} {count}")).collect();
        writeln!(out, "## {}\n\ntestssl.sh: {}.\n", self.title, counts.join(", "))?;
        writeln!(out, "| severity | test | finding | counts |\n|---|---|---|---|")?;
        let quiet = ["OK", "INFO", "DEBUG"];
        for finding in self.findings.iter().filter(|it| !quiet.contains(&it.severity.as_str())) {
            let counts = if self.is_fault(finding) { "**yes**" } else { "no" };
            writeln!(
                out,
                "| {} | {} | {} | {counts} |",
                finding.severity, finding.id, finding.text
            )?;
        }
        writeln!(out, "\nsslscan agreed on:\n")?;
        for cipher in &self.ciphers {
            writeln!(out, "- {cipher}")?;
        }
        Ok(())
    }
}

pub fn findings(text: &str) -> Result<Vec<TestsslLine>, String> {
    let report: serde_json::Value = serde_json::from_str(text)
        .map_err(|error| format!("the report of testssl is no JSON: {error}"))?;
    let lines = report.as_array().ok_or("the report of testssl is no list")?;
    let word = |line: &serde_json::Value, key: &str| {
        line.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    Ok(lines
        .iter()
        .map(|line| TestsslLine {
            id: word(line, "id"),
            severity: word(line, "severity"),
            text: word(line, "finding"),
        })
        .collect())
}

/// Version and cipher of sslscan's lines `Preferred TLSv1.3 …` and `Accepted TLSv1.2 …`.
pub fn ciphers(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            matches!(words.next()?, "Preferred" | "Accepted").then_some(())?;
            let version = words.next()?;
            let cipher = words.nth(2)?;
            Some(format!("{version} {cipher}"))
        })
        .collect()
}

fn is_modern(cipher: &str) -> bool {
    let (version, name) = cipher.split_once(' ').unwrap_or_default();
    let is_aead = name.contains("GCM") || name.contains("CHACHA20");
    let has_forward_secrecy = version == "TLSv1.3" || name.starts_with("ECDHE-");
    ["TLSv1.2", "TLSv1.3"].contains(&version) && is_aead && has_forward_secrecy
}

/// The version in testssl.sh's banner, which 3.0 and 3.2 word differently.
pub fn testssl_version(banner: &str) -> String {
    let plain = without_escapes(banner);
    let mut words = plain.split_whitespace().skip_while(|word| !word.starts_with("testssl"));
    let version = words.find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    version.unwrap_or("unknown").to_owned()
}

/// The banner has colours whatever it is told.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let before = parts.next().unwrap_or_default();
    let rest = parts.filter_map(|part| part.split_once('m').map(|(_, plain)| plain));
    std::iter::once(before).chain(rest).collect()
}

/// The findings for which a certificate made on the spot and a site without headers of the operator's are blamed for.
const SELF_SIGNED: &[&str] = &[
    "cert_chain_of_trust",
    "cert_revocation",
    "cert_expirationStatus",
    "cert_validityPeriod",
    "cert_extlifeSpan",
    "security_headers",
    "overall_grade",
];

#[cfg(test)]
mod tests;
