//! The rate of a response.

use std::num::NonZeroU64;

/// The rate of a response, from some byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendRate {
    /// Bytes of the body in a second.
    pub bytes_per_second: NonZeroU64,
    /// Bytes that go at once before that.
    pub after_bytes: u64,
}

impl SendRate {
    /// That of a route; none if it has none.
    pub fn of(route: &kettle_config::Route) -> Option<Self> {
        let bytes_per_second = NonZeroU64::new(route.limit_rate?)?;
        Some(Self { bytes_per_second, after_bytes: route.limit_rate_after })
    }
}
