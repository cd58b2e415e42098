//! The picture of README: some rows of the tables in docs/performance.md as bars, where nginx is 100 %.

use crate::checkout;
use crate::files;

/// A bar: how it is labelled, its second line, how the sentence calls it, and the row of a table it shows.
struct Bar {
    label: &'static str,
    below: &'static str,
    said: &'static str,
    row: &'static str,
}

const fn bar(
    label: &'static str,
    below: &'static str,
    said: &'static str,
    row: &'static str,
) -> Bar {
    Bar { label, below, said, row }
}

const BARS: &[Bar] = &[
    bar(
        "New connection",
        "TLS 1.3 handshake, 1 KB, close",
        "a new connection",
        "full TLS 1.3 handshake, 1 KB, close",
    ),
    bar("1 KB on a kept connection", "", "1 KB", "1 KB on a connection that stays"),
    bar("64 KB on a kept connection", "", "64 KB", "64 KB on a connection that stays"),
    bar("1 MB on a kept connection", "", "1 MB", "1 MB on a connection that stays"),
    bar("1 KiB of a backend", "of the better of nginx, HAProxy", "1 KiB of a backend", "1 KiB"),
    bar(
        "Idle connection",
        "memory after one request",
        "an idle connection",
        "idle connection after one request, memory",
    ),
];

/// The figures in a row of a table.
struct Cost {
    unit: String,
    ours: String,
    theirs: String,
    /// Ours as a part of theirs: the middle, and both ends of its interval.
    ratio: [f64; 3],
}

/// Draws the picture by this page, and puts what it says into README.
pub fn draw(page: &str) -> Result<(), String> {
    let (picture, sentence) = drawn(page);
    let root = checkout::workspace();
    files::write(root.join("docs/performance/beside-nginx.svg"), &picture)?;
    let path = root.join("README.md");
    let readme = files::read(&path)?;
    let lines = readme.lines().map(|line| match line.ends_with(IMAGE) {
        true => format!("![{sentence}{IMAGE}\n"),
        false => format!("{line}\n"),
    });
    files::write(&path, lines.collect::<String>())
}

/// The picture, and what it says in a sentence. Rows that the page does not have are left out.
pub fn drawn(page: &str) -> (String, String) {
    let there = BARS.iter().filter_map(|bar| Some((bar, cost(page, bar.row)?)));
    let mut shown = String::new();
    let mut shares = Vec::new();
    let mut top = 78;
    for (bar, cost) in there {
        shown.push_str(&drawn_bar(bar, &cost, top));
        shares.push(format!("{} {:.0} %", bar.said, cost.ratio[0] * 100.0));
        top += STEP;
    }
    let sentence = format!("{TITLE}: {}", shares.join(", "));
    let first = top + 10;
    let second = top + 28;
    let height = top + 42;
    let picture = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" width="720" height="{height}" role="img" aria-labelledby="title about">
  <title id="title">{TITLE}</title>
  <desc id="about">{sentence}.</desc>
  <!-- `cargo xtask measure native` draws it by the tables in docs/performance.md. -->
{STYLE}  <text class="head" x="230" y="26">{TITLE}</text>
  <rect class="kettle" x="230" y="41" width="12" height="12" rx="2"/>
  <text class="small" x="248" y="51">kettle</text>
  <rect class="nginx" x="300" y="41" width="12" height="12" rx="2"/>
  <text class="small" x="318" y="51">nginx 1.30</text>
  <path class="range" d="M396 47h22M396 43v8M418 43v8"/>
  <text class="small" x="426" y="51">95 % interval of the rounds</text>
{shown}  <text class="small" x="230" y="{first}">Server's processor time; memory. Medians. No kernel TLS on either side.</text>
  <text class="small" x="230" y="{second}">cargo xtask measure native; docs/performance.md has machines and versions.</text>
</svg>
"#
    );
    (picture, sentence)
}

fn drawn_bar(bar: &Bar, cost: &Cost, top: u32) -> String {
    let Bar { label, below, .. } = bar;
    let Cost { unit, ours, theirs, ratio } = cost;
    let [middle, low, high] = ratio.map(|ratio| (ratio * f64::from(WIDTH)).round());
    let share = format!("{:.0} %", ratio[0] * 100.0);
    let line = top + if below.is_empty() { 17 } else { 10 };
    let center = top + 12;
    let number = top + 17;
    let mut text = format!(
        "  <text class=\"label\" x=\"216\" y=\"{line}\" text-anchor=\"end\">{label}</text>\n"
    );
    if !below.is_empty() {
        let line = line + 15;
        text += &format!(
            "  <text class=\"small\" x=\"216\" y=\"{line}\" text-anchor=\"end\">{below}</text>\n"
        );
    }
    text += &format!(
        r#"  <rect class="nginx" x="{LEFT}" y="{top}" width="{WIDTH}" height="24" rx="3"/>
  <rect class="kettle" x="{LEFT}" y="{top}" width="{middle}" height="24" rx="3"/>
"#
    );
    if low < high {
        let ([low, high], ends) = ([low, high].map(|it| it + f64::from(LEFT)), top + 8);
        // One that goes on beyond the words beside the bar is open there.
        let most = f64::from(LEFT + WIDTH + 8);
        let end = if high <= most { format!("M{high} {ends}v8") } else { String::new() };
        let high = high.min(most);
        text += &format!(
            "  <path class=\"range\" d=\"M{low} {center}H{high}M{low} {ends}v8{end}\"/>\n"
        );
    }
    text + &format!(
        r#"  <text class="share" x="239" y="{number}">{share}</text>
  <text class="small" x="572" y="{number}">{ours} {unit} of {theirs} {unit}</text>
"#
    )
}

/// Reads a row: ours, one or two others, the ratio to the better of them, the aim.
fn cost(page: &str, row: &str) -> Option<Cost> {
    let begin = format!("| {row} (");
    let line = page.lines().find(|line| {
        line.strip_prefix(&begin).is_some_and(|rest| matches!(rest.find(')'), Some(..=4)))
    })?;
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [name, ours, others @ .., ratio, _] = cells.as_slice() else { return None };
    let median = |cell: &str| cell.split(' ').next().map(str::to_owned);
    let value = |cell: &String| cell.parse::<f64>().ok();
    let theirs = others.iter().filter_map(|cell| median(cell)).filter(|it| value(it).is_some());
    let theirs = theirs.min_by(|one, other| {
        value(one).partial_cmp(&value(other)).unwrap_or(std::cmp::Ordering::Equal)
    })?;
    let numbers = ratio.split([' ', '(', ')']).filter_map(|word| word.parse().ok());
    let numbers: Vec<f64> = numbers.collect();
    let (_, unit) = name.rsplit_once('(')?;
    Some(Cost {
        unit: unit.trim_end_matches(')').to_owned(),
        ours: median(ours)?,
        theirs,
        ratio: numbers.try_into().ok()?,
    })
}

const TITLE: &str = "What kettle costs, where nginx is 100 %";
const IMAGE: &str = "](docs/performance/beside-nginx.svg)";
const LEFT: u32 = 230;
const WIDTH: u32 = 330;
const STEP: u32 = 44;
const STYLE: &str = r#"  <style>
    text { font-family: system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; font-size: 14px; fill: #24292f; }
    .head { font-size: 16px; font-weight: 600; }
    .small { font-size: 12px; fill: #57606a; }
    .share { font-size: 13px; font-weight: 600; fill: #ffffff; }
    .nginx { fill: #d8dee4; }
    .kettle { fill: #0969da; }
    .range { stroke: #24292f; stroke-width: 1.3; fill: none; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .small { fill: #9da7b3; }
      .nginx { fill: #30363d; }
      .kettle { fill: #1f6feb; }
      .range { stroke: #e6edf3; }
    }
  </style>
"#;
