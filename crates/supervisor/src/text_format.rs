//! From OpenMetrics to Prometheus' older text format (0.0.4), which tools read that ask for nothing else.
//!
//! Both have the same samples. The older one names a counter's family with its `_total`, and knows neither `info`,
//! units nor an end mark.

/// Rewrites the descriptions of metric families; samples stay as they are.
pub(super) fn text_format(open_metrics: &str) -> String {
    let mut out = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        if line.starts_with("# HELP ") {
            help = Some(line);
        } else if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').unwrap_or((family, "untyped"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some(text) = help.take().and_then(|help| help.splitn(4, ' ').nth(3)) {
                out.push_str(&format!("# HELP {name}{suffix} {text}\n"));
            }
            out.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::text_format;

    #[test]
    fn families_get_the_names_and_types_of_the_older_format() {
        let open_metrics = "\
# HELP kettle_build Version of kettle.
# TYPE kettle_build info
kettle_build_info{version=\"1\"} 1
# HELP kettle_reloads Reloads.
# TYPE kettle_reloads counter
kettle_reloads_total{outcome=\"done\"} 2
# HELP kettle_wait_seconds Wait.
# TYPE kettle_wait_seconds histogram
# UNIT kettle_wait_seconds seconds
kettle_wait_seconds_bucket{le=\"+Inf\"} 3
# EOF
";
        let expected = "\
# HELP kettle_build_info Version of kettle.
# TYPE kettle_build_info gauge
kettle_build_info{version=\"1\"} 1
# HELP kettle_reloads_total Reloads.
# TYPE kettle_reloads_total counter
kettle_reloads_total{outcome=\"done\"} 2
# HELP kettle_wait_seconds Wait.
# TYPE kettle_wait_seconds histogram
kettle_wait_seconds_bucket{le=\"+Inf\"} 3
";
        assert_eq!(text_format(open_metrics), expected);
    }
}
