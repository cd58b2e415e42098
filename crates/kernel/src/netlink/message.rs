//! The bytes of generic netlink: one request out, messages and their attributes in. Lengths are never trusted.

/// One request of a generic netlink family.
pub(super) struct Request {
    content: Vec<u8>,
}

impl Request {
    pub(super) fn new(family: u16, command: u8) -> Self {
        let mut content = Vec::with_capacity(64);
        content.extend(0_u32.to_ne_bytes());
        content.extend(family.to_ne_bytes());
        content.extend(FLAG_REQUEST.to_ne_bytes());
        // Sequence number and port: this socket asks one thing at a time, and the kernel fills in the port.
        content.extend([0; 8]);
        content.extend([command, FAMILY_VERSION, 0, 0]);
        Self { content }.with_length()
    }

    pub(super) fn with_text(mut self, kind: u16, text: &str) -> Self {
        let with_end = [text.as_bytes(), &[0]].concat();
        self.push_attribute(kind, &with_end);
        self.with_length()
    }

    pub(super) fn with_empty_nest(mut self, kind: u16) -> Self {
        self.push_attribute(kind | ATTRIBUTE_NESTED, &[]);
        self.with_length()
    }

    /// Asks about every object there is.
    pub(super) fn for_all(mut self) -> Self {
        let flags = FLAG_REQUEST | FLAG_DUMP;
        self.write_at(FLAGS_OFFSET, &flags.to_ne_bytes());
        self
    }

    pub(super) fn is_for_all(&self) -> bool {
        let flags = self.content.get(FLAGS_OFFSET..).and_then(|rest| rest.first_chunk());
        flags.is_some_and(|flags| u16::from_ne_bytes(*flags) & FLAG_DUMP == FLAG_DUMP)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.content
    }

    fn push_attribute(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + value.len()).unwrap_or(u16::MAX);
        self.content.extend(length.to_ne_bytes());
        self.content.extend(kind.to_ne_bytes());
        self.content.extend(value);
        self.content.resize(self.content.len().next_multiple_of(ALIGNMENT), 0);
    }

    fn with_length(mut self) -> Self {
        let length = u32::try_from(self.content.len()).unwrap_or(u32::MAX);
        self.write_at(0, &length.to_ne_bytes());
        self
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) {
        for (to, from) in self.content.iter_mut().skip(offset).zip(bytes) {
            *to = *from;
        }
    }
}

/// One message from the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message<'b> {
    /// A reply; the bytes are its attributes.
    Reply(&'b [u8]),
    /// The request failed, with an errno.
    Error(i32),
    /// There are no more replies.
    Done,
}

/// The messages in one datagram. A length that does not fit ends the iteration.
pub(super) fn messages(mut datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*datagram.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*datagram.get(4..)?.first_chunk()?);
        let content = datagram.get(MESSAGE_HEADER_BYTES..length)?;
        datagram = datagram.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some(match kind {
            MESSAGE_ERROR => {
                let negative = content.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                // Zero acknowledges a request; nothing else follows it.
                if negative == 0 { Message::Done } else { Message::Error(negative.wrapping_neg()) }
            }
            MESSAGE_DONE => Message::Done,
            _ => Message::Reply(content.get(FAMILY_HEADER_BYTES..).unwrap_or_default()),
        })
    })
}

/// The attributes in a message or in another attribute: kind and value.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?) & ATTRIBUTE_KIND_MASK;
        let value = bytes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A value that is text and ends in NUL.
pub(super) fn text(value: &[u8]) -> String {
    let value = value.strip_suffix(&[0]).unwrap_or(value);
    String::from_utf8_lossy(value).into_owned()
}

// From `uapi/linux/netlink.h`.
const MESSAGE_HEADER_BYTES: usize = 16;
const MESSAGE_ERROR: u16 = 2;
const MESSAGE_DONE: u16 = 3;
const FLAG_REQUEST: u16 = 0x1;
const FLAG_DUMP: u16 = 0x300;
const FLAGS_OFFSET: usize = 6;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
const ATTRIBUTE_NESTED: u16 = 0x8000;
const ATTRIBUTE_KIND_MASK: u16 = 0x3fff;
const ALIGNMENT: usize = 4;

// From `uapi/linux/genetlink.h`.
const FAMILY_HEADER_BYTES: usize = 4;
const FAMILY_VERSION: u8 = 1;
pub(super) const CONTROL_FAMILY: u16 = 16;
pub(super) const CONTROL_GET_FAMILY: u8 = 3;
pub(super) const CONTROL_FAMILY_ID: u16 = 1;
pub(super) const CONTROL_FAMILY_NAME: u16 = 2;

// From `uapi/linux/ethtool_netlink.h`.
pub(super) const FEATURES_GET: u8 = 11;
pub(super) const FEATURES_HEADER: u16 = 1;
pub(super) const FEATURES_CHANGEABLE: u16 = 2;
pub(super) const FEATURES_ACTIVE: u16 = 4;
pub(super) const HEADER_DEVICE_NAME: u16 = 2;
pub(super) const BITSET_NO_MASK: u16 = 1;
pub(super) const BITSET_BITS: u16 = 3;
pub(super) const BIT_NAME: u16 = 2;
pub(super) const BIT_VALUE: u16 = 3;
