//! Which of several servers gets the next connection: pure functions over their weights and connections.
//!
//! Which servers may be chosen at all is decided elsewhere; none of these waits, and none looks at a clock.

use std::net::IpAddr;

use kettle_runtime::client_address::ClientHost;

/// A server as a choice sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its share beside the others': at least 1.
    pub weight: u32,
    /// The number of connections it has.
    pub connections: u32,
    /// True if it may be chosen.
    pub is_eligible: bool,
    /// The key by which [`source_hash`] knows it by: the same in every process and after every reload.
    pub key: u64,
}

impl Candidate {
    /// True if one connection more makes this one less busy for its weight than one more makes the other.
    fn is_less_busy_than(&self, other: &Self) -> bool {
        let load = |one: &Self, weight: u32| (u64::from(one.connections) + 1) * u64::from(weight);
        load(self, other.weight) < load(other, self.weight)
    }
}

/// The one with the fewest connections for its weight. Among equals it is the first from `rotation` on.
#[must_use]
pub fn least_connections(candidates: &[Candidate], rotation: usize) -> Option<usize> {
    let start = rotation.checked_rem(candidates.len())?;
    let (before, after) = candidates.split_at_checked(start)?;
    let after = after.iter().enumerate().map(|(index, it)| (start + index, it));
    after
        .chain(before.iter().enumerate())
        .filter(|(_, it)| it.is_eligible)
        .fold(None, |best: Option<(usize, &Candidate)>, (index, it)| match best {
            Some((_, chosen)) if !it.is_less_busy_than(chosen) => best,
            _ => Some((index, it)),
        })
        .map(|(index, _)| index)
}

/// One after the other, as often as its weight says, and evenly spread (nginx's smooth weighted round-robin). `credits`
/// has one number for each candidate, 0 at first, and belongs to this function.
#[must_use]
pub fn round_robin(candidates: &[Candidate], credits: &mut [i64]) -> Option<usize> {
    let mut total = 0;
    let mut best: Option<(usize, i64)> = None;
    for (index, (it, credit)) in candidates.iter().zip(credits.iter_mut()).enumerate() {
        if !it.is_eligible {
            continue;
        }
        total += i64::from(it.weight);
        *credit += i64::from(it.weight);
        if best.is_none_or(|(_, most)| *credit > most) {
            best = Some((index, *credit));
        }
    }
    let (index, _) = best?;
    *credits.get_mut(index)? -= total;
    Some(index)
}

/// The less busy one of two, drawn by lot, each as often as its weight says.
#[must_use]
pub fn random_two(candidates: &[Candidate], random: u64) -> Option<usize> {
    let first = draw(candidates, None, random)?;
    let Some(second) = draw(candidates, Some(first), mix(random)) else { return Some(first) };
    match (candidates.get(first), candidates.get(second)) {
        (Some(one), Some(other)) if other.is_less_busy_than(one) => Some(second),
        _ => Some(first),
    }
}

/// Always the same one for the same address.
#[must_use]
pub fn source_hash(candidates: &[Candidate], client: ClientHost) -> Option<usize> {
    keyed(candidates, address_key(client))
}

/// Always the same one for the same key (weighted rendezvous hashing): a candidate that is lost moves only its own
/// keys, and one that comes takes only those it will keep.
#[must_use]
pub fn keyed(candidates: &[Candidate], key: u64) -> Option<usize> {
    let eligible = candidates.iter().enumerate().filter(|(_, it)| it.is_eligible);
    let scored = eligible.map(|(index, it)| (index, score(mix(key ^ mix(it.key)), it.weight)));
    scored.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(index, _)| index)
}

/// Returns the part that stands for a client in nginx's `ip_hash`: the first three bytes of an IPv4 address, the whole of any
/// other.
#[must_use]
pub fn network_of(client: ClientHost) -> ClientHost {
    match client.to_canonical() {
        ClientHost::Ip(IpAddr::V4(address)) => {
            let [one, two, three, _] = address.octets();
            IpAddr::from([one, two, three, 0]).into()
        }
        other => other,
    }
}

/// The first.
#[must_use]
pub fn first(candidates: &[Candidate]) -> Option<usize> {
    candidates.iter().position(|it| it.is_eligible)
}

/// Returns the key by which [`source_hash`] knows a server by: FNV-1a of its address as text, with its name behind that of one
/// of several there.
#[must_use]
pub fn key_of(text: &str) -> u64 {
    hash(text.as_bytes())
}

/// Spreads the bits of a number (splitmix64): numbers in a row become numbers without a pattern.
#[must_use]
pub fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// One of the eligible, by weight, but not `except`.
fn draw(candidates: &[Candidate], except: Option<usize>, random: u64) -> Option<usize> {
    let eligible =
        || candidates.iter().enumerate().filter(|(at, it)| it.is_eligible && Some(*at) != except);
    let total: u64 = eligible().map(|(_, it)| u64::from(it.weight)).sum();
    let mut left = random.checked_rem(total)?;
    for (index, it) in eligible() {
        match left.checked_sub(u64::from(it.weight)) {
            Some(rest) => left = rest,
            None => return Some(index),
        }
    }
    None
}

/// The score of a weight for a hash: -w / ln(u) with u in (0, 1), so that the highest of several is that of each as
/// often as its weight says.
fn score(hash: u64, weight: u32) -> f64 {
    // 53 bits are what an f64 holds; one half more keeps it off 0 and 1.
    let unit = ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -f64::from(weight) / unit.ln()
}

fn address_key(client: ClientHost) -> u64 {
    match client.to_canonical() {
        ClientHost::Ip(IpAddr::V4(address)) => hash(&address.octets()),
        ClientHost::Ip(IpAddr::V6(address)) => hash(&address.octets()),
        ClientHost::Unix => hash(&[]),
    }
}

/// FNV-1a: the same in every process.
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
