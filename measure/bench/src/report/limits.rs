//! The limits of a run: what was said to be missing, what follows from the machine, and the warnings of the samples.

use std::collections::BTreeMap;

use super::conclusion::joined;
use super::gathered::Gathered;
use super::markup::Markup;
use super::number;
use super::trust::{CPUS_TO_SCALE, ROUNDS_FOR_INTERVAL, is_limited};
use crate::results::{Clock, distinct};

/// Writes the box, if there is anything to say; there always is.
pub fn write(page: &mut Markup, files: &[Gathered]) {
    page.raw("<section class=\"limits\" id=\"limits\"><h2>What this run cannot show</h2><ul>");
    let sentences = distinct(files.iter().flat_map(of_machine)).into_iter();
    for sentence in sentences.chain(files.iter().flat_map(of_samples)) {
        page.prose("li", &sentence);
    }
    page.raw("</ul>");
    write_absent(page, files);
    write_warnings(page, files);
    page.raw("</section>");
}

fn of_machine(file: &Gathered) -> Vec<String> {
    let Some(run) = file.runs.first() else { return Vec::new() };
    let machine = &run.machine;
    if run.clock == Clock::Work {
        return vec![
            "Work counts instructions, copies and calls under an emulator. Nothing about time, throughput or latency \
             follows from it, and nothing about caches or memory bandwidth."
                .to_owned(),
        ];
    }
    let mut limits = Vec::new();
    if machine.cpus < CPUS_TO_SCALE {
        limits.push(format!(
            "The machine has {}, so the client works beside the server and nothing is shown of how servers scale over cores.",
            number::counted(machine.cpus, "processor", "processors")
        ));
    }
    if let Some(host) = machine.virtualization.as_deref().filter(|host| *host != "none") {
        let host = if host.contains("virtual") { String::new() } else { format!(" ({host})") };
        limits.push(format!(
            "This is a virtual machine{host}: neighbours share its caches and its memory, and its clock is theirs too."
        ));
    }
    if let Some(why) = machine.kernel_tls.strip_prefix("no") {
        let why = why.trim_start_matches([':', ' ']);
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        limits.push(format!(
            "This kernel carries no TLS{why}: every path through the kernel is missing. `auto` runs the same code as `user` there, so its \
             samples count as more of `user`."
        ));
    }
    if machine.governor.as_deref().is_some_and(|governor| governor != "performance") {
        limits.push("The frequency governor is not `performance`: the clock may have changed while measuring.".to_owned());
    }
    limits.push("Everything goes over loopback: no network card, no offload, no packet is lost, and the sender pays for receiving.".to_owned());
    limits
}

fn of_samples(file: &Gathered) -> Vec<String> {
    let mut limits = Vec::new();
    let mut few = Vec::new();
    let mut unfinished = Vec::new();
    for scenario in &file.scenarios {
        let limited = scenario.samples.iter().filter(|sample| is_limited(sample)).count();
        let all = scenario.samples.len();
        if limited > 0 {
            limits.push(format!(
                "{}: in {limited} of {all} samples the client was at its own limit; rates there are the client's, and only \
                 the server's processor time counts.",
                scenario.name
            ));
        }
        let rounds =
            scenario.samples.iter().map(|sample| sample.round).max().map_or(0, |last| last + 1);
        if !scenario.is_work && (1..ROUNDS_FOR_INTERVAL as u32).contains(&rounds) {
            few.push(format!("{} ({rounds})", scenario.name));
        }
        if !scenario.is_complete {
            unfinished.push(scenario.name.to_owned());
        }
    }
    if !few.is_empty() {
        limits.push(format!(
            "Too few rounds for an interval: {}. Whiskers there span all rounds.",
            joined(&few)
        ));
    }
    if !unfinished.is_empty() {
        limits.push(format!(
            "The run ended before everything was measured: {}.",
            joined(&unfinished)
        ));
    }
    limits
}

fn write_absent(page: &mut Markup, files: &[Gathered]) {
    // The same reason for many things is said once.
    let mut reasons: BTreeMap<&str, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for absent in
        files.iter().flat_map(|file| &file.scenarios).flat_map(|scenario| &scenario.absent)
    {
        let (things, scenarios) = reasons.entry(&absent.why).or_default();
        for (list, word) in [(things, &absent.what), (scenarios, &absent.scenario)] {
            if !list.contains(&word.as_str()) {
                list.push(word);
            }
        }
    }
    if reasons.is_empty() {
        return;
    }
    page.raw("<h4>Left out</h4><ul>");
    for (why, (things, scenarios)) in reasons {
        page.raw("<li>");
        page.element("strong", &[], &first_of(&things));
        let short: String = why.chars().take(REASON_MAX).collect();
        let more = if short.len() < why.len() { "…" } else { "" };
        page.prose("span", &format!(" ({}): {short}{more}", scenarios.join(", ")));
        page.raw("</li>");
    }
    page.raw("</ul>");
}

/// The first few; a list of all would hide the reason behind it, and the results have it.
fn first_of(things: &[&str]) -> String {
    match things.get(..THINGS_MAX) {
        Some(first) if things.len() > THINGS_MAX => {
            format!("{} and {} more", first.join(", "), things.len() - THINGS_MAX)
        }
        _ => things.join(", "),
    }
}

fn write_warnings(page: &mut Markup, files: &[Gathered]) {
    let samples = || files.iter().flat_map(Gathered::samples);
    // Most have a number of their own, so the first of a kind stands for all.
    let mut counted: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    for warning in samples().flat_map(|sample| &sample.warnings) {
        let kind = warning.split(|character: char| character.is_ascii_digit()).collect();
        counted.entry(kind).or_insert((warning, 0)).1 += 1;
    }
    if counted.is_empty() {
        return;
    }
    let doubtful = samples().filter(|sample| !sample.warnings.is_empty()).count();
    let all = number::counted(samples().count(), "sample", "samples");
    page.raw("<details><summary>");
    page.text(&format!("{doubtful} of {all} carry a warning"));
    page.raw("</summary><ul>");
    let mut counted: Vec<(&str, usize)> = counted.into_values().collect();
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (warning, count) in counted {
        let text = if count == 1 {
            format!("once: {warning}")
        } else {
            format!("{count} times, such as: {warning}")
        };
        page.element("li", &[], &text);
    }
    page.raw("</ul></details>");
}

/// Things that are left out for one reason and named.
const THINGS_MAX: usize = 4;
/// A server may say a lot before it ends; the beginning tells why, and the results hold all of it.
const REASON_MAX: usize = 320;
