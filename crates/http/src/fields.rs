//! The field lines of a head, found quickly and moved cheaply.
//!
//! A head changes hands several times on its way to whoever answers it, so it holds positions, on
//! the heap. The bytes come with each question.

/// The place of something in a head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    start: u16,
    bytes: u16,
}

impl Extent {
    /// Returns the place of `part` in `head`, from which it was cut. `None` if that does not fit 16 bits,
    /// which the limit of a head rules out.
    pub(crate) fn of(part: &[u8], head: &[u8]) -> Option<Self> {
        let start = part.as_ptr().addr().checked_sub(head.as_ptr().addr())?;
        Some(Self { start: u16::try_from(start).ok()?, bytes: u16::try_from(part.len()).ok()? })
    }

    #[inline]
    pub(crate) fn slice(self, head: &[u8]) -> &[u8] {
        let start = usize::from(self.start);
        head.get(start..start + usize::from(self.bytes)).unwrap_or_default()
    }

    /// The same as text, of which it was when the head was read.
    #[inline]
    pub(crate) fn text(self, head: &[u8]) -> &str {
        std::str::from_utf8(self.slice(head)).unwrap_or_default()
    }
}

/// The field lines of one head. They have been checked: each is `name ":" OWS value OWS CRLF`.
#[derive(Clone)]
pub(crate) struct Fields {
    /// Which names may be there: the union of [`name_bit`] over all lines. Most look-ups are for
    /// fields that are not there, and end with this.
    names: u64,
    lines: Vec<Line>,
}

#[derive(Clone, Copy)]
struct Line {
    name: Extent,
    value: Extent,
}

impl Fields {
    /// None yet, and room for this many.
    pub(crate) fn with_capacity(lines: usize) -> Self {
        Fields { names: 0, lines: Vec::with_capacity(lines) }
    }

    /// Adds the next line, given its name and its value as they stand in the head.
    pub(crate) fn push(&mut self, head: &[u8], name: &[u8], value: &[u8]) -> Option<()> {
        self.names |= name_bit(name);
        self.lines.push(Line { name: Extent::of(name, head)?, value: Extent::of(value, head)? });
        Some(())
    }

    /// The values of the lines of one name, in any case, in order.
    #[inline]
    pub(crate) fn values<'h, 'n>(&'h self, head: &'h [u8], wanted: &'n [u8]) -> Values<'h, 'n> {
        let lines = if self.may_hold(wanted) { self.lines.as_slice() } else { &[] };
        Values { head, wanted, lines: lines.iter() }
    }

    /// The lines but those of these names, which are in lower case.
    pub(crate) fn without(&self, head: &[u8], names: &[&[u8]]) -> Self {
        let is_left = |line: &&Line| {
            !names.iter().any(|name| line.name.slice(head).eq_ignore_ascii_case(name))
        };
        Self { names: self.names, lines: self.lines.iter().filter(is_left).copied().collect() }
    }

    #[inline]
    fn may_hold(&self, wanted: &[u8]) -> bool {
        self.names & name_bit(wanted) != 0
    }

    /// Names and values of all lines, in order.
    #[inline]
    pub(crate) fn iter<'h>(&'h self, head: &'h [u8]) -> impl Iterator<Item = (&'h [u8], &'h [u8])> {
        self.lines.iter().map(|line| (line.name.slice(head), line.value.slice(head)))
    }
}

/// An iterator over the values of one name. Written out, because every request asks for ten
/// names or more and the combinators cost several times as much.
#[derive(Clone)]
pub(crate) struct Values<'h, 'n> {
    head: &'h [u8],
    wanted: &'n [u8],
    lines: std::slice::Iter<'h, Line>,
}

impl<'h> Iterator for Values<'h, '_> {
    type Item = &'h [u8];

    #[inline]
    fn next(&mut self) -> Option<&'h [u8]> {
        for line in self.lines.by_ref() {
            if usize::from(line.name.bytes) == self.wanted.len()
                && line.name.slice(self.head).eq_ignore_ascii_case(self.wanted)
            {
                return Some(line.value.slice(self.head));
            }
        }
        None
    }
}

/// One of 64 bits for a name, whatever its case: few of the names in use share one.
#[inline]
pub(crate) const fn name_bit(name: &[u8]) -> u64 {
    let initial = match name {
        [initial, ..] => initial.to_ascii_lowercase(),
        [] => 0,
    };
    1 << ((name.len() * 7 + initial as usize) % 64)
}

/// The bits of all these names.
pub(crate) const fn name_bits(mut names: &[&str]) -> u64 {
    let mut bits = 0;
    while let [name, rest @ ..] = names {
        bits |= name_bit(name.as_bytes());
        names = rest;
    }
    bits
}

#[cfg(test)]
mod tests;
