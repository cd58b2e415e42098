//! Reading back the ClientHello that rustls made: whether it offers a TLS 1.2 ticket, which rustls does not tell.

/// Whether a record with a whole ClientHello has a session_ticket extension that is not empty (RFC 5077 §3.2).
pub(crate) fn offers_ticket(record: &[u8]) -> bool {
    session_ticket(record).is_some_and(|ticket| !ticket.is_empty())
}

fn session_ticket(record: &[u8]) -> Option<&[u8]> {
    let mut hello = record.get(BYTES_BEFORE_SESSION_ID..)?;
    take_vector(&mut hello, 1)?; // legacy_session_id
    take_vector(&mut hello, 2)?; // cipher_suites
    take_vector(&mut hello, 1)?; // legacy_compression_methods
    let mut extensions = take_vector(&mut hello, 2)?;
    loop {
        let (kind, rest) = extensions.split_first_chunk::<2>()?;
        extensions = rest;
        let content = take_vector(&mut extensions, 2)?;
        if u16::from_be_bytes(*kind) == SESSION_TICKET {
            return Some(content);
        }
    }
}

/// Takes a vector whose length stands before it in so many bytes.
fn take_vector<'a>(from: &mut &'a [u8], length_bytes: usize) -> Option<&'a [u8]> {
    let (length, rest) = from.split_at_checked(length_bytes)?;
    let length = length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
    let (vector, rest) = rest.split_at_checked(length)?;
    *from = rest;
    Some(vector)
}

/// The record's and the message's header, `legacy_version` and `random` (RFC 8446 §4.1.2).
const BYTES_BEFORE_SESSION_ID: usize = 5 + 4 + 2 + 32;

/// `ExtensionType` (RFC 5077 §4).
const SESSION_TICKET: u16 = 35;

#[cfg(test)]
mod tests;
