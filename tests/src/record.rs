//! TLS records as they stand on the wire.

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The content type in the header.
    pub content_type: u8,
    /// The bytes behind the header.
    pub body: Vec<u8>,
}

/// Splits what was received into records. Whatever is not a whole record fails the test: after a TLS handshake
/// began, nothing else may be on the wire.
pub fn records(received: &[u8]) -> Vec<Record> {
    let (records, rest) = whole_records(received);
    assert!(rest.is_empty(), "the last {} bytes received are no whole record", rest.len());
    records
}

/// Splits off the whole records; what is left may be the beginning of another.
pub fn whole_records(received: &[u8]) -> (Vec<Record>, &[u8]) {
    let mut records = Vec::new();
    let mut rest = received;
    while let Some((header, after)) = rest.split_first_chunk::<5>() {
        let [content_type, major, minor, high, low] = *header;
        assert!(
            (20..=23).contains(&content_type) && major == 3 && (1..=4).contains(&minor),
            "this is no TLS record: {header:02x?}"
        );
        let bytes = usize::from(u16::from_be_bytes([high, low]));
        let Some((body, beyond)) = after.split_at_checked(bytes) else { break };
        records.push(Record { content_type, body: body.to_vec() });
        rest = beyond;
    }
    (records, rest)
}

impl Record {
    /// The number of bytes of content it protects, if it carries application data of this kind of
    /// suite.
    pub fn content_bytes(&self, overhead_bytes: usize) -> usize {
        self.body.len() - overhead_bytes
    }
}

/// `ContentType` (RFC 8446 §5.1).
pub const CHANGE_CIPHER_SPEC: u8 = 20;
/// An alert.
pub const ALERT: u8 = 21;
/// A handshake message.
pub const HANDSHAKE: u8 = 22;
/// Application data; under TLS 1.3, anything protected.
pub const APPLICATION_DATA: u8 = 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_records_are_split_from_the_beginning_of_another() {
        let received = [22, 3, 1, 0, 1, 9, 23, 3, 3, 0, 2, 7, 8, 23, 3, 3, 0, 9];
        let (records, rest) = whole_records(&received);
        let expected = [(22, vec![9]), (23, vec![7, 8])];
        assert_eq!(records, expected.map(|(content_type, body)| Record { content_type, body }));
        assert_eq!(rest, [23, 3, 3, 0, 9]);
    }

    #[test]
    #[should_panic(expected = "this is no TLS record")]
    fn plaintext_between_records_fails_the_test() {
        let _ = whole_records(b"\x17\x03\x03\x00\x01xHTTP/1.1 200 OK");
    }

    #[test]
    #[should_panic(expected = "no whole record")]
    fn half_a_record_at_the_end_fails_the_test() {
        let _ = records(&[23, 3, 3, 0, 2, 7]);
    }
}
