//! Names the subject that needs less of something, in a sentence, as far as the samples tell.

use super::joined;
use crate::diff::work;
use crate::figure::{self, Better, Figure, Phrase};
use crate::report::axis::Axis;
use crate::report::sampling::Samples;
use crate::report::speech;
use crate::report::style;
use crate::stats::Estimate;
use crate::stats::comparison::{Comparison, Interval, SAMPLES_MIN, Verdict};

/// A subject with the value of each round.
struct Ranked<'a> {
    subject: &'a str,
    rounds: Vec<f64>,
    median: f64,
}

/// Says how the subjects compare by a figure, or by the sum of several. `purpose` says what it is spent for, where that is more
/// than the figure says: `for a 1 MiB file`.
pub fn compared(samples: &Samples, names: &[&str], purpose: Option<&str>) -> Option<String> {
    let figure = figure::find(names.first()?)?;
    let ranking = ranked(samples, names, figure);
    let axis = Axis::of_figure(figure.name);
    let best = ranking.first()?;
    let amount = axis.exactly(best.median);
    if ranking.len() == 1 {
        return Some(format!("{}: {amount}.", best.subject));
    }
    let everyone = everyone(&ranking);
    if ranking.iter().all(|one| axis.exactly(one.median) == amount) {
        return Some(format!("No difference: {amount} {everyone}."));
    }
    if figure.is_count() {
        return Some(counted(&ranking, figure, &axis, &everyone));
    }
    match figure.phrase {
        Some(phrase) if names.len() > 1 => {
            let purpose =
                format!("{}, the kernel's part included", purpose.unwrap_or(phrase.purpose));
            spoken(&ranking, figure, phrase, &purpose)
        }
        Some(phrase) => spoken(&ranking, figure, phrase, purpose.unwrap_or(phrase.purpose)),
        None => Some(listed(&ranking, figure, &axis)),
    }
}

/// The subjects that encrypt, the best first.
fn ranked<'a>(samples: &Samples<'a>, names: &[&str], figure: &Figure) -> Vec<Ranked<'a>> {
    let subjects = samples.subjects().into_iter().filter(|subject| style::way(subject) != "plain");
    let mut ranking: Vec<Ranked> = subjects
        .filter_map(|subject| {
            let rounds = samples.subject(subject).rounds_of_sum(names);
            let median = Estimate::of(&rounds)?.median;
            Some(Ranked { subject, rounds, median })
        })
        .collect();
    ranking.sort_by(|a, b| a.median.total_cmp(&b.median));
    if figure.better == Better::Higher {
        ranking.reverse();
    }
    ranking
}

fn everyone(ranking: &[Ranked]) -> String {
    let first = ranking.first().map(|one| style::program(one.subject));
    let is_one = ranking.iter().all(|one| Some(style::program(one.subject)) == first);
    format!(
        "{} every {}",
        if is_one { "by" } else { "with" },
        if is_one { "path" } else { "server" }
    )
}

/// Figures that are counted repeat: a tolerance decides, not the number of rounds.
fn counted(ranking: &[Ranked], figure: &Figure, axis: &Axis, everyone: &str) -> String {
    let (Some(best), Some(most)) = (ranking.first(), ranking.last()) else { return String::new() };
    let is_same = |one: &&Ranked| work::verdict(figure, best.median, one.median) == Verdict::Same;
    let amount = axis.exactly(best.median);
    let least: Vec<String> =
        ranking.iter().filter(is_same).map(|one| one.subject.to_owned()).collect();
    if least.len() == ranking.len() {
        return format!("No difference: about {amount} {everyone}.");
    }
    let least = joined(&least);
    let last = axis.exactly(most.median);
    format!("Least with {least} ({amount}), most with {} ({last}).", most.subject)
}

/// Ours against the best of each other program; among paths of one program, the best against the next.
fn spoken(ranking: &[Ranked], figure: &Figure, phrase: Phrase, purpose: &str) -> Option<String> {
    let ours = ranking.iter().find(|one| one.subject == "kettle auto");
    let ours = ours.or_else(|| ranking.iter().find(|one| style::program(one.subject) == "kettle"));
    let mut peers: Vec<&Ranked> = Vec::new();
    for one in ranking.iter().filter(|one| style::program(one.subject) != "kettle") {
        if !peers.iter().any(|peer| style::program(peer.subject) == style::program(one.subject)) {
            peers.push(one);
        }
    }
    let (ours, peers) = match ours {
        Some(ours) if !peers.is_empty() => (ours, peers),
        _ => (ranking.first()?, vec![ranking.get(1)?]),
    };
    let short = |one: &Ranked| {
        let program = style::program(one.subject);
        let paths = ranking.iter().filter(|other| style::program(other.subject) == program);
        if paths.count() == 1 { program.to_owned() } else { one.subject.to_owned() }
    };
    let name = short(ours);
    let mut decided = Vec::new();
    let mut few = Vec::new();
    let mut open = Vec::new();
    let mut least_rounds = usize::MAX;
    for peer in peers {
        let comparison = Comparison::of(&peer.rounds, &ours.rounds)?;
        let rounds = peer.rounds.len().min(ours.rounds.len());
        let Some(ratio) = comparison.ratio else { continue };
        match comparison.verdict(figure.better) {
            _ if rounds < SAMPLES_MIN => {
                least_rounds = least_rounds.min(rounds);
                few.push((ratio, short(peer)));
            }
            Verdict::Undecided | Verdict::Same => open.push((ratio, short(peer))),
            Verdict::Better | Verdict::Worse => decided.push((ratio, short(peer))),
        }
    }
    let mut sentences = Vec::new();
    if !decided.is_empty() {
        let shares = shares(&decided, phrase, figure, true);
        sentences.push(format!("{name} {} {shares} {purpose}", phrase.verb));
    }
    if !few.is_empty() {
        let shares = shares(&few, phrase, figure, false);
        let rounds = speech::rounds(least_rounds);
        let purpose = if decided.is_empty() { purpose } else { "" };
        let whole = format!("{name} {} {shares} {purpose}", phrase.verb);
        sentences.push(format!("{}, but with {rounds} that is undecided", whole.trim_end()));
    }
    for (ratio, peer) in &open {
        let middle = speech::multiple(ratio.middle);
        let within = speech::range(ratio);
        sentences.push(format!(
            "Between {name} and {peer} no difference can be told: {middle} ({within}) times"
        ));
    }
    let sentences = sentences.iter().map(|sentence| format!("{}.", sentence.trim_end()));
    Some(sentences.collect::<Vec<_>>().join(" "))
}

/// `0.47 of nginx's processor time and 0.20 of stunnel's`.
fn shares(
    ratios: &[(Interval, String)],
    phrase: Phrase,
    figure: &Figure,
    has_interval: bool,
) -> String {
    let parts = ratios.iter().enumerate().map(|(index, (ratio, peer))| {
        let thing = if index == 0 { phrase.thing } else { "" };
        let middle = speech::multiple(ratio.middle);
        match figure.better {
            Better::Higher if has_interval => {
                let within = speech::range(ratio);
                format!("{middle} ({within}) times as {} as {peer}", phrase.thing)
            }
            Better::Higher => format!("{middle} times as {} as {peer}", phrase.thing),
            _ if has_interval => speech::share_within(ratio, peer, thing),
            _ => speech::share(ratio.middle, peer, thing),
        }
    });
    joined(&parts.collect::<Vec<_>>())
}

/// Names the first and the next, for figures nobody has a word for.
fn listed(ranking: &[Ranked], figure: &Figure, axis: &Axis) -> String {
    let (Some(best), Some(next)) = (ranking.first(), ranking.get(1)) else { return String::new() };
    let first = axis.exactly(best.median);
    let second = axis.exactly(next.median);
    let rounds = best.rounds.len().min(next.rounds.len());
    let best_name = best.subject;
    let next_name = next.subject;
    let comparison = Comparison::of(&next.rounds, &best.rounds);
    let verdict = comparison.map_or(Verdict::Undecided, |c| c.verdict(figure.better));
    let values = format!("{best_name} {first}, {next_name} {second}");
    match verdict {
        Verdict::Better | Verdict::Worse => format!("{}: {values}.", figure.label),
        _ if rounds < SAMPLES_MIN => {
            format!(
                "{}: {values}, but with {} that is undecided.",
                figure.label,
                speech::rounds(rounds)
            )
        }
        _ => format!("{}: {values}; no difference can be told.", figure.label),
    }
}
