//! Writing field blocks: from the static table and as literals, so no state has to be kept.
//!
//! Strings are not Huffman coded either: a peer has to read them plain, and that takes no time here.

use super::static_table::{self, AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};

/// Appends the `:status` of a response.
pub fn encode_status(status: u16, block: &mut Vec<u8>) {
    // Indexed (RFC 7541 §6.1) where the static table has the status.
    let indexed = match status {
        200 => 0x88,
        204 => 0x89,
        206 => 0x8a,
        304 => 0x8b,
        400 => 0x8c,
        404 => 0x8d,
        500 => 0x8e,
        _ => {
            let mut digits = itoa::Buffer::new();
            return encode_field(b":status", digits.format(status).as_bytes(), block);
        }
    };
    block.push(indexed);
}

/// Appends a field line as a literal that no table keeps (RFC 7541 §6.2.2), its name in lower case
/// as HTTP/2 has it. Credentials are marked as never to be kept, by no one on the way (§6.2.3).
///
/// The caller knows whether the name is a token and the value one of a field.
pub fn encode_field(name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    match static_table::name_index(name) {
        Some(index) => {
            let never_indexed =
                matches!(index, AUTHORIZATION | COOKIE | PROXY_AUTHORIZATION | SET_COOKIE);
            let representation = if never_indexed { 0x10 } else { 0x00 };
            encode_integer(usize::from(index), 4, representation, block);
        }
        None => {
            block.push(0x00);
            encode_integer(name.len(), 7, 0x00, block);
            let start = block.len();
            block.extend_from_slice(name);
            if let Some(name) = block.get_mut(start..) {
                name.make_ascii_lowercase();
            }
        }
    }
    encode_integer(value.len(), 7, 0x00, block);
    block.extend_from_slice(value);
}

/// Appends the dynamic table size update to 0 (RFC 7541 §6.3), which can only be the beginning of a
/// block. It tells the peer that its table is not used and needs no memory.
pub fn encode_table_of_nothing(block: &mut Vec<u8>) {
    block.push(0x20);
}

/// An integer (§5.1) behind the bits that say what it is for, with a prefix of at most seven bits.
#[inline]
fn encode_integer(value: usize, prefix_bits: u32, representation: u8, block: &mut Vec<u8>) {
    let prefix_max = (1_u8 << prefix_bits) - 1;
    match u8::try_from(value) {
        Ok(value) if value < prefix_max => block.push(representation + value),
        _ => {
            block.push(representation + prefix_max);
            let mut rest = value - usize::from(prefix_max);
            while rest >= 0x80 {
                block.push(0x80 + (rest & 0x7f) as u8);
                rest >>= 7;
            }
            block.push(rest as u8);
        }
    }
}

#[cfg(test)]
mod tests;
