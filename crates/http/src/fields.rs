//! The field lines of a head, found quickly and moved cheaply.
//!
//! A head changes hands several times on its way to whoever answers it, so this is kept small:
//! positions of the first lines, and the bytes of the rest.

use crate::field;

/// The field lines of one head. They have been checked: each is `name ":" OWS value OWS CRLF`.
#[derive(Clone)]
pub(crate) struct Fields<'b> {
    head: &'b [u8],
    /// Which names may be there: the union of [`name_bit`] over all lines. Most look-ups are for
    /// fields that are not there, and end with this.
    names: u64,
    lines: [Line; LINES_KEPT],
    count: usize,
    /// The bytes from the first line that found no place in `lines`, with the empty line.
    rest: &'b [u8],
}

#[derive(Clone, Copy)]
struct Line {
    name_start: u16,
    name_bytes: u16,
    value_start: u16,
    value_bytes: u16,
}

impl<'b> Fields<'b> {
    /// None yet. `head` ends with its empty line.
    pub(crate) fn new(head: &'b [u8]) -> Self {
        let none = Line { name_start: 0, name_bytes: 0, value_start: 0, value_bytes: 0 };
        Fields { head, names: 0, lines: [none; LINES_KEPT], count: 0, rest: &[] }
    }

    /// Adds the next line, given the positions of its name and its value in the head.
    ///
    /// `None` if a position does not fit 16 bits, which the limit of a head rules out.
    pub(crate) fn push(
        &mut self,
        (name_start, name): (usize, &[u8]),
        (value_start, value): (usize, &[u8]),
    ) -> Option<()> {
        self.names |= name_bit(name);
        match self.lines.get_mut(self.count) {
            Some(line) => {
                *line = Line {
                    name_start: u16::try_from(name_start).ok()?,
                    name_bytes: u16::try_from(name.len()).ok()?,
                    value_start: u16::try_from(value_start).ok()?,
                    value_bytes: u16::try_from(value.len()).ok()?,
                };
                self.count += 1;
            }
            None if self.rest.is_empty() => self.rest = self.head.get(name_start..)?,
            None => {}
        }
        Some(())
    }

    /// The values of the lines of one name, in any case, in order.
    #[inline]
    pub(crate) fn values<'f>(&'f self, wanted: &'f [u8]) -> Values<'f, 'b> {
        let mut values = Values { head: self.head, wanted, lines: [].iter(), rest: &[] };
        if self.names & name_bit(wanted) != 0 {
            values.lines = self.kept().iter();
            values.rest = self.rest;
        }
        values
    }

    /// Names and values of all lines, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'b [u8], &'b [u8])> + '_ {
        let kept = self.kept().iter().map(|line| (line.name(self.head), line.value(self.head)));
        kept.chain(lines_of(self.rest))
    }

    fn kept(&self) -> &[Line] {
        self.lines.get(..self.count).unwrap_or_default()
    }
}

impl Line {
    fn name<'b>(&self, head: &'b [u8]) -> &'b [u8] {
        let start = usize::from(self.name_start);
        head.get(start..start + usize::from(self.name_bytes)).unwrap_or_default()
    }

    fn value<'b>(&self, head: &'b [u8]) -> &'b [u8] {
        let start = usize::from(self.value_start);
        head.get(start..start + usize::from(self.value_bytes)).unwrap_or_default()
    }
}

/// An iterator over the values of one name. Written out, because every request asks for ten
/// names or more and the combinators cost several times as much.
#[derive(Clone)]
pub(crate) struct Values<'f, 'b> {
    head: &'b [u8],
    wanted: &'f [u8],
    lines: std::slice::Iter<'f, Line>,
    rest: &'b [u8],
}

impl<'b> Iterator for Values<'_, 'b> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        for line in self.lines.by_ref() {
            if usize::from(line.name_bytes) == self.wanted.len()
                && line.name(self.head).eq_ignore_ascii_case(self.wanted)
            {
                return Some(line.value(self.head));
            }
        }
        if self.rest.is_empty() { None } else { self.next_of_rest() }
    }
}

impl<'b> Values<'_, 'b> {
    #[cold]
    fn next_of_rest(&mut self) -> Option<&'b [u8]> {
        while let Some((name, value, rest)) = split_line(self.rest) {
            self.rest = rest;
            if name.eq_ignore_ascii_case(self.wanted) {
                return Some(value);
            }
        }
        None
    }
}

/// One of 64 bits for a name, whatever its case: few of the names in use share one.
fn name_bit(name: &[u8]) -> u64 {
    let initial = name.first().map_or(0, u8::to_ascii_lowercase);
    1 << ((name.len() * 7 + usize::from(initial)) % 64)
}

/// Takes lines apart again, up to the empty one.
fn lines_of(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let (name, value, rest) = split_line(bytes)?;
        bytes = rest;
        Some((name, value))
    })
}

/// The name and the value of the first line, and the lines after it.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = bytes.split_at_checked(end + 1)?;
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at_checked(colon)?;
    Some((name, field::trim(value.strip_prefix(b":")?.strip_suffix(b"\r\n")?), rest))
}

/// Lines whose positions are kept. Browsers send about 20.
const LINES_KEPT: usize = 32;

#[cfg(test)]
mod tests;
