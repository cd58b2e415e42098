//! The top of the page, what was measured, where and when, and its foot, how to repeat it.

use super::gathered::Gathered;
use super::markup::Markup;
use super::{Section, limits, number};
use crate::results::{Clock, Run};

/// A heading made from what was measured.
#[must_use]
pub fn title(files: &[Gathered]) -> String {
    let processor =
        files.iter().flat_map(|file| &file.runs).map(|run| run.machine.processor.as_str()).next();
    match processor {
        Some(processor) if !processor.is_empty() => format!("Serving TLS on {}", plain(processor)),
        _ => "Serving TLS".to_owned(),
    }
}

/// Where the numbers of a chart come from, in one line.
#[must_use]
pub fn caption(file: &Gathered) -> String {
    let Some(run) = file.runs.first() else { return String::new() };
    let mut words = vec![format!("kettle bench {}", run.kettle)];
    words.push(plain(&run.machine.processor));
    words.push(format!("Linux {}", run.machine.kernel));
    words.push(date(run.started));
    words.push(clock(run).to_owned());
    words.retain(|word| !word.is_empty());
    words.join(" · ")
}

/// Writes the top.
pub fn write(page: &mut Markup, title: &str, files: &[Gathered], sections: &[Section]) {
    page.raw(
        "<header class=\"top\"><div class=\"mark-line\">kettle bench<span>report</span></div>",
    );
    page.element("h1", &[], title);
    let names: Vec<String> = sections.iter().map(|section| section.scene.name.to_owned()).collect();
    let count = files.iter().flat_map(|file| &file.scenes).map(|scene| scene.samples.len()).sum();
    let lead = format!(
        "{}; {}.",
        super::finding::joined(&names),
        number::counted(count, "sample", "samples")
    );
    page.element("p", &[("class", "lead")], &lead);
    let mut known = Vec::new();
    for file in files {
        write_facts(page, file, &mut known);
    }
    limits::write(page, files);
    write_glance(page, sections);
    page.raw("</header><nav aria-label=\"Scenarios\"><ul>");
    for section in sections {
        page.raw("<li>");
        page.element("a", &[("href", &format!("#{}", section.id))], section.scene.name);
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
        ("Started", date(run.started)),
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

fn write_glance(page: &mut Markup, sections: &[Section]) {
    // One for each scenario; the rest stands with its chart.
    let first =
        |section: &'_ Section| section.charts.iter().position(|chart| !chart.finding.is_empty());
    let found = sections.iter().filter_map(|section| section.charts.get(first(section)?));
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return;
    }
    page.raw("<div class=\"glance\"><h2>At a glance</h2><ul>");
    for chart in found {
        page.raw("<li>");
        page.element("a", &[("href", &format!("#{}", chart.name))], &chart.question);
        page.element("span", &[], &chart.finding);
        page.raw("</li>");
    }
    page.raw("</ul></div>");
}

/// Writes the foot.
pub fn write_foot(page: &mut Markup, files: &[Gathered]) {
    page.raw("<footer><h3>How to repeat it</h3>");
    for run in files.iter().flat_map(|file| &file.runs) {
        page.element("pre", &[], &run.command.join(" "));
    }
    page.raw("<p>Points are medians over the rounds, which were interleaved; whiskers are the 95 % interval of the median, or all rounds where there are fewer than six. ");
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

/// Seconds since 1970 as a day and a time, UTC; days are counted by the proleptic Gregorian calendar.
fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // From 0000-03-01 on, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3600, rest / 60 % 60)
}

#[cfg(test)]
mod tests;
