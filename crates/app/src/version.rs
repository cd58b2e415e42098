//! The output of `kettle --version`: the version and what it was built from, and what does TLS in it.

/// The version in the first line, for programs that read it; then the rest, for people.
pub(crate) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("KETTLE_BUILT_FROM"),
    ")\n",
    "kernel TLS  compiled in, for sending; `kettle doctor` says whether this kernel has it\n",
    "rustls      ",
    env!("KETTLE_RUSTLS"),
    "\n",
    "aws-lc      aws-lc-rs ",
    env!("KETTLE_AWS_LC_RS"),
    ", aws-lc-sys ",
    env!("KETTLE_AWS_LC_SYS"),
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_version_and_where_it_is_from() {
        let (first, rest) = VERSION.split_once('\n').unwrap();
        let from = first.strip_prefix(env!("CARGO_PKG_VERSION")).unwrap();
        assert!(from.starts_with(" (commit ") || from == " (built outside its repository)");
        assert!(rest.contains("\nrustls      0."), "{rest}");
        assert!(rest.contains("aws-lc-rs 1."), "{rest}");
        assert!(!rest.contains("unknown"), "{rest}");
    }
}
