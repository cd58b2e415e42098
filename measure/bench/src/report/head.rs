//! The top of the page, its answer and how far that can be trusted; and its foot, where and when it was measured and how to repeat it.

use super::gathered::Gathered;
use super::markup::Markup;
use super::trust::Trust;
use super::verdict::{self, PageVerdict};
use super::{Section, number};
use crate::results::{Clock, Run};

/// A heading that says what was found, or what was measured if nothing is decided.
pub fn title(files: &[Gathered], verdict: &PageVerdict) -> String {
    let is_work = !files.is_empty() && files.iter().all(Gathered::is_work);
    let mut runs = files.iter().flat_map(|file| &file.runs);
    let processor = runs.next().map(|run| plain(&run.machine.processor)).unwrap_or_default();
    match (verdict.headline(), processor.as_str()) {
        (Some(conclusion), _) => conclusion,
        (None, _) if is_work => "What a request makes a TLS server do".to_owned(),
        (None, _) if !verdict.peers.is_empty() => {
            let peers = super::conclusion::joined(&verdict.peers);
            format!("What is asked here is not decided yet between kettle and {peers}")
        }
        (None, "") => "Serving TLS".to_owned(),
        (None, processor) => format!("Serving TLS on {processor}"),
    }
}

/// The machine and the day, in one line.
pub fn place(files: &[Gathered]) -> String {
    let Some(run) = files.iter().flat_map(|file| &file.runs).next() else { return String::new() };
    let machine = &run.machine;
    in_a_line(&[
        plain(&machine.processor),
        number::counted(machine.cpus, "processor", "processors"),
        format!("Linux {}", machine.kernel),
        number::date(run.started).chars().take(10).collect(),
        format!("kettle {}", run.kettle),
    ])
}

/// Says in one line where the numbers of a chart come from.
pub fn caption(file: &Gathered) -> String {
    let Some(run) = file.runs.first() else { return String::new() };
    in_a_line(&[
        format!("kettle bench {}", run.kettle),
        plain(&run.machine.processor),
        format!("Linux {}", run.machine.kernel),
        number::date(run.started),
        clock(run).to_owned(),
    ])
}

fn in_a_line(words: &[String]) -> String {
    let known = words.iter().filter(|word| !word.is_empty()).map(String::as_str);
    known.collect::<Vec<_>>().join(" · ")
}

pub fn write(
    page: &mut Markup,
    title: &str,
    files: &[Gathered],
    sections: &[Section],
    (verdict, trust): (&PageVerdict, &Trust),
) {
    page.raw(
        "<header class=\"top\"><div class=\"mark-line\">kettle bench<span>report</span></div>",
    );
    page.element("h1", &[], title);
    if let Some(first) = &trust.first {
        page.open("p", &[("class", "lead")]);
        page.element("strong", &[], first);
        page.close("p");
    }
    page.element("p", &[("class", "lead")], &place(files));
    page.raw("<p class=\"trust\"><strong>How far to trust this: ");
    page.text(trust.level);
    page.raw(".</strong> ");
    if !trust.reasons.is_empty() {
        page.text(&format!("{}. ", super::speech::capital(&trust.reasons.join("; "))));
    }
    if let Some(kernel) = &trust.kernel {
        page.element("strong", &[], kernel);
    }
    page.raw(" <a href=\"#limits\">What this run cannot show</a></p>");
    verdict::write(page, verdict);
    page.raw("</header><nav aria-label=\"Scenarios\"><ul>");
    let scenarios = sections.iter().map(|section| (section.id.as_str(), section.scenario.name));
    for (id, name) in scenarios.chain([("limits", "limits"), ("provenance", "provenance")]) {
        page.raw("<li>");
        page.element("a", &[("href", &format!("#{id}"))], name);
        page.raw("</li>");
    }
    page.raw("</ul></nav>");
}

/// Writes what is known of a file's run, but for what was known before.
fn write_facts(page: &mut Markup, file: &Gathered, known: &mut Vec<(&'static str, String)>) {
    let Some(run) = file.runs.first() else { return };
    let machine = &run.machine;
    let mut facts = vec![
        ("Counted", clock(run).to_owned()),
        ("Processor", machine.processor.clone()),
        ("Processors online", machine.cpus.to_string()),
        ("Memory", number::quantity(machine.memory_bytes as f64, "B")),
        ("Kernel", format!("Linux {}", machine.kernel)),
        ("Kernel TLS", machine.kernel_tls.clone()),
        ("Virtual machine", machine.virtualization.clone().unwrap_or_default()),
        ("Governor", machine.governor.clone().unwrap_or_default()),
        ("Flags", machine.flags.join(" ")),
        ("Started", number::date(run.started)),
        ("kettle", run.kettle.clone()),
        ("Commit", run.commit.as_deref().unwrap_or_default().chars().take(12).collect()),
    ];
    if file.runs.len() > 1 {
        let resumed = number::counted(file.runs.len() - 1, "time", "times");
        facts.push(("Resumed", resumed));
    }
    facts.retain(|fact| !fact.1.is_empty() && !known.contains(fact));
    page.raw("<dl class=\"facts\">");
    for (name, value) in &facts {
        page.raw("<div>");
        page.element("dt", &[], name);
        page.element("dd", &[], value);
        page.raw("</div>");
    }
    page.raw("</dl>");
    known.extend(facts);
}

pub fn write_foot(page: &mut Markup, files: &[Gathered]) {
    page.raw("<footer id=\"provenance\"><h2>Where this comes from</h2>");
    let samples = files.iter().flat_map(Gathered::samples).count();
    page.element("p", &[], &format!("{}.", number::counted(samples, "sample", "samples")));
    let mut known = Vec::new();
    for file in files {
        write_facts(page, file, &mut known);
    }
    page.raw("<h3>How to repeat it</h3>");
    for run in files.iter().flat_map(|file| &file.runs) {
        page.element("pre", &[], &run.command.join(" "));
    }
    page.raw("<h3>How to read it</h3><p>Points are medians over the rounds, which were interleaved; whiskers are the 95 % interval of the median, or all rounds where there are fewer than six. ");
    page.raw("A ratio in the table at the top has the 95 % interval of Mann and Whitney's test, a 90 % one with three rounds; with fewer than three nothing is called decided. ");
    page.raw("Colours are programs. The thick line is where kettle chooses; dashes and shapes tell where records are encrypted: a circle in the process, ");
    page.raw("a square in the kernel from buffers, a triangle in the kernel from the page cache, a diamond not at all.</p></footer>");
}

fn clock(run: &Run) -> &'static str {
    match run.clock {
        Clock::Time => "time on real hardware",
        Clock::Work => "work under an emulator, not time",
    }
}

/// A processor's name without its marks.
fn plain(processor: &str) -> String {
    let bare =
        processor.replace("(R)", "").replace("(TM)", "").replace("(r)", "").replace(" CPU", "");
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
