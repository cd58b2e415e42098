//! Which Linux this is. `uname -r` tells the series; the stable release within it often stands elsewhere.

#[cfg(test)]
mod tests;

use std::fmt;

/// A Linux version; the stable release is unknown where a vendor keeps it at 0 and adds patches of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelVersion {
    /// Major and minor number.
    pub(crate) series: (u32, u32),
    /// The stable release, the third number.
    pub(crate) stable: Option<u32>,
}

impl KernelVersion {
    /// Reads `uname -r`, the build line in `/proc/version` (Debian writes its version there) and Ubuntu's
    /// `/proc/version_signature`.
    pub(crate) fn parse(release: &str, build: &str, signature: &str) -> Option<Self> {
        let (major, minor, third) = numbers(release)?;
        let series = (major, minor);
        // Enterprise kernels stay at one release and take in fixes one by one: the number says nothing about them.
        let is_patched_by_vendor =
            [".el8", ".el9", ".el10"].iter().any(|mark| release.contains(mark));
        let packaged = build
            .split_ascii_whitespace()
            .skip_while(|word| *word != "Debian")
            .nth(1)
            .or_else(|| signature.split_ascii_whitespace().next_back())
            .and_then(numbers)
            .filter(|(major, minor, _)| (*major, *minor) == series)
            .map(|(_, _, stable)| stable);
        let named = (third != 0).then_some(third);
        let stable = if is_patched_by_vendor { None } else { packaged.or(named) };
        Some(Self { series, stable })
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.series;
        write!(f, "{major}.{minor}")?;
        self.stable.map_or(Ok(()), |stable| write!(f, ".{stable}"))
    }
}

fn numbers(version: &str) -> Option<(u32, u32, u32)> {
    let mut parts = version.split(|character: char| !character.is_ascii_digit());
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    let third = parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    Some((major, minor, third))
}
