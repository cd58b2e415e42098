//! `kettle bench load`: a load on any server, and what it answered.

mod ramp;
mod version;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use kettle_loadgen::client::outcome::Handshakes;
use kettle_loadgen::client::{self, Outcome, Progress};
use kettle_loadgen::load::{Arrivals, BodyUse, End, Expect, Load, LoadModel, Reuse};
use kettle_loadgen::offer::{Offer, ResumeBy};
use serde_json::json;

use super::url::Url;
use crate::cli::LoadArguments;
use crate::command::output::{print, print_line, show_progress};
use crate::number::{count, digits, latency};
use crate::scenario::capacity;
use crate::scenario::measured::encode;
use crate::scenario::stop::Stop;

/// Puts the load on and prints what came of it. Ctrl-C ends it early and prints what there is.
pub(crate) fn load(arguments: &LoadArguments) -> Result<ExitCode, String> {
    let load = plan(arguments, &Url::parse(&arguments.url)?)?;
    let stop = Stop::on_signals()?;
    let shows = io::stderr().is_terminal();
    let outcome = client::run_with(&load, stop.asked(), &mut |progress| {
        if shows {
            show(progress, &load);
        }
    });
    if shows {
        show_progress("");
    }
    let outcome = outcome.map_err(|error| version::explain(&error, &load))?;
    let mix = outcome.check_mix(&load).err();
    if arguments.json {
        print_line(format_args!("{:#}", to_json(&outcome, mix.as_deref())));
    } else {
        print(render(&outcome, &load, mix.as_deref()));
    }
    // Like curl: a load without one right answer, or another one than was asked for, is no success.
    let is_success = outcome.succeeded > 0 && mix.is_none();
    Ok(if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn plan(arguments: &LoadArguments, url: &Url) -> Result<Load, String> {
    arguments.http.check()?;
    let per_session = arguments.connections_per_session;
    let resume_by = match arguments.resume {
        Some(way) => way,
        None if per_session > 1 => ResumeBy::Ticket,
        None => ResumeBy::Nothing,
    };
    if per_session > 1 && arguments.requests_per_connection.is_none() {
        return Err(
            "a connection that never closes is never followed by another of its session; add \
                    --requests-per-connection 1"
                .to_owned(),
        );
    }
    if resume_by != ResumeBy::Nothing && per_session == 1 {
        return Err("there is nothing to resume with one connection for each session; add \
                    --connections-per-session 2 or more"
            .to_owned());
    }
    let offer = Offer {
        version: arguments.tls,
        cipher: arguments.suite,
        group: arguments.group,
        resume_by,
        http2: arguments.http.at_once(),
    };
    let end = end(arguments);
    let (model, connections, per_second) = model(arguments);
    let cpus = arguments
        .cpus
        .clone()
        .unwrap_or_else(|| capacity::cpus_allowed().into_iter().take(1).collect());
    let target = arguments.connect.map_or_else(|| url.resolve(), Ok)?;
    Ok(Load {
        target,
        host: url.host.clone(),
        path: url.path.clone(),
        tls: url.is_secure.then_some(offer),
        reuse: Reuse {
            requests_per_connection: arguments.requests_per_connection,
            connections_per_session: per_session,
        },
        model,
        end,
        warm_up: arguments.warm_up,
        expect: Expect::default(),
        body: match arguments.open {
            true => BodyUse::Open,
            false => BodyUse::Discard { hash_one_in: u32::MAX },
        },
        cpus,
        // Only this machine has 127.0.0.2 and the like.
        headers: arguments.headers.clone(),
        sources: if target.ip().is_loopback() {
            capacity::sources(connections, per_second)
        } else {
            1
        },
        timeout: arguments.timeout,
    })
}

/// After a time, or after so many requests.
fn end(arguments: &LoadArguments) -> End {
    let warm_up = arguments.warm_up;
    match (arguments.requests, arguments.seconds.map(|length| length + warm_up)) {
        (Some(count), length) => {
            End::Requests { count: count.into(), at_most: length.unwrap_or(REQUESTS_TIME_MAX) }
        }
        (None, Some(length)) => End::After(length),
        (None, None) => End::After(LENGTH_USUAL + warm_up),
    }
}

/// The load model, how many connections it has at once, and how many new ones each second at most.
fn model(arguments: &LoadArguments) -> (LoadModel, u32, f64) {
    if arguments.idle {
        let connections = arguments.connections;
        return (LoadModel::Idle { connections, requests: 1 }, connections, 0.0);
    }
    let arrivals = match (arguments.rate, arguments.ramp) {
        (Some(per_second), _) => Arrivals::Constant { per_second },
        (None, Some((from, to))) => Arrivals::Ramp { from, to },
        (None, None) => {
            let connections = arguments.connections;
            let is_churn = arguments.requests_per_connection.is_some();
            let churn = if is_churn { CHURN_GUESSED } else { 0.0 };
            return (LoadModel::Closed { connections }, connections, churn);
        }
    };
    let model = LoadModel::Open { arrivals, transactions_max: TRANSACTIONS_MAX };
    (model, TRANSACTIONS_MAX, arrivals.per_second_max())
}

fn show(progress: &Progress, load: &Load) {
    let Progress { elapsed, succeeded, failed, mean_us, open_connections, .. } = progress;
    let failed_count = *failed;
    let rate = *succeeded as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    let failed = if *failed > 0 { format!(", {} FAILED", count(*failed)) } else { String::new() };
    let done = match load.end {
        End::After(length) => {
            format!("{} of {} s", elapsed.as_secs().min(length.as_secs()), length.as_secs())
        }
        End::Requests { count: all, .. } => {
            format!("{} of {} requests", count(succeeded + failed_count), count(all))
        }
    };
    let rate = digits(if elapsed.is_zero() { 0.0 } else { rate });
    let mean = latency(*mean_us);
    show_progress(format_args!("{done}: {rate}/s, mean {mean}, {open_connections} open{failed}"));
}

fn render(outcome: &Outcome, load: &Load, mix: Option<&str>) -> String {
    let seconds = outcome.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    let rate = |count: u64| digits(count as f64 / seconds);
    let failed: u64 = outcome.failures.values().sum();
    let mut lines = vec![format!(
        "{} requests in {:.2} s: {}/s, {} Gb/s",
        count(outcome.delivered.answers),
        outcome.elapsed.as_secs_f64(),
        rate(outcome.delivered.answers),
        digits(outcome.delivered.body_bytes as f64 * 8.0 / 1e9 / seconds),
    )];
    if outcome.late_answers > 0 {
        lines.push(format!(
            "            {} more were answered after that: they count in the latency, not in the rate",
            count(outcome.late_answers)
        ));
    }
    if failed > 0 {
        lines.push(format!("FAILED      {}: {}", count(failed), outcome.causes_in_words()));
        let is_refused = outcome.succeeded == 0 && outcome.handshakes.failed > 0;
        lines.extend(is_refused.then(|| version::hint(load)).flatten().map(|it| format!("! {it}")));
    }
    let from = match load.model {
        LoadModel::Open { .. } => "from when it was due",
        _ => "from when it was begun",
    };
    for (name, histogram) in [
        (format!("Latency {from}, to the last byte"), &outcome.latency),
        ("to the first byte".to_owned(), &outcome.first_byte),
        ("Handshake".to_owned(), &outcome.handshake),
    ] {
        if histogram.is_empty() {
            continue;
        }
        let at = |quantile: f64| latency(histogram.value_at_quantile(quantile) as f64);
        lines.push(format!(
            "{name}:\n            mean {}, median {}, 99 % {}, 99.9 % {}, longest {}",
            latency(histogram.mean()),
            at(0.5),
            at(0.99),
            at(0.999),
            latency(histogram.max() as f64),
        ));
    }
    let made = &outcome.handshakes;
    if load.tls.is_some() && *made == Handshakes::default() {
        lines.push("Handshakes: none, connections were open before counting began".to_owned());
    } else if load.tls.is_some() {
        lines.push(format!(
            "Handshakes: {} full, {} by ticket, {} by session ID, {} with early data, {} failed",
            made.full, made.by_ticket, made.by_session_id, made.early_data, made.failed
        ));
        for (kind, bytes) in
            [("full", made.bytes_per_full()), ("resumed", made.bytes_per_resumed())]
        {
            lines.extend(
                bytes.map(|bytes| format!("            {bytes:.0} B on the wire for a {kind} one")),
            );
        }
    }
    lines.extend(ramp::in_words(outcome, load));
    if let Some(warning) = outcome.client_limited() {
        lines.push(format!("! {warning}"));
    }
    if let Some(mix) = mix {
        lines.push(format!("! this is not the load asked for: {mix}"));
    }
    lines.join("\n") + "\n"
}

fn to_json(outcome: &Outcome, mix: Option<&str>) -> serde_json::Value {
    let latency = &outcome.latency;
    let at = |quantile: f64| latency.value_at_quantile(quantile);
    let made = &outcome.handshakes;
    json!({
        "seconds": outcome.elapsed.as_secs_f64(),
        "attempted": outcome.attempted,
        "succeeded": outcome.succeeded,
        "failures": outcome.failures,
        "causes": outcome.causes,
        "body_bytes": outcome.body_bytes,
        "late_answers": outcome.late_answers,
        "requests_per_second": outcome.delivered.answers as f64 / outcome.elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
        "latency_us": {
            "mean": latency.mean(), "p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": latency.max(),
        },
        "latency_histogram": encode(latency),
        "first_byte_histogram": encode(&outcome.first_byte),
        "handshake_histogram": encode(&outcome.handshake),
        "handshakes": {
            "full": made.full, "by_ticket": made.by_ticket, "by_session_id": made.by_session_id,
            "bytes_per_full": made.bytes_per_full(), "bytes_per_resumed": made.bytes_per_resumed(),
            "early_data": made.early_data, "not_resumed": made.not_resumed, "failed": made.failed,
        },
        "each_second": outcome.seconds.iter().map(|second| json!({
            "attempted": second.attempted(), "succeeded": second.succeeded, "failed": second.failed,
            "mean_us": second.mean_us(),
        })).collect::<Vec<_>>(),
        "client_busy": outcome.thread_busy,
        "client_limited": outcome.client_limited(),
        "late_starts": outcome.late_starts,
        "not_as_asked": mix,
    })
}

/// The time a load lasts whose end is not given.
const LENGTH_USUAL: Duration = Duration::from_secs(10);

/// The time a load lasts at most that ends by its requests.
const REQUESTS_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// An open loop that a server no longer keeps up with piles up transactions; beyond this many they fail at once.
const TRANSACTIONS_MAX: u32 = 10_000;

/// New connections a second that a closed loop may come to, for choosing how many addresses they come from.
const CHURN_GUESSED: f64 = 5_000.0;

#[cfg(test)]
mod tests;
