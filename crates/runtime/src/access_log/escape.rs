//! Bytes that peers send, made safe to stand in a log: no line can be broken, no terminal driven.

/// Writes a JSON string, quotes included, for any bytes.
///
/// Bytes that are not UTF-8 become the code point of the same number, which is how RFC 9110 §5.5
/// has field values read that are not ASCII (ISO 8859-1).
pub(super) fn write_json_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                // C1 control characters drive terminals too.
                '\0'..='\x1f' | '\x7f'..='\u{9f}' => write_code_point(out, character as u8),
                _ => {
                    let mut encoded = [0; 4];
                    out.extend_from_slice(character.encode_utf8(&mut encoded).as_bytes());
                }
            }
        }
        for byte in chunk.invalid() {
            write_code_point(out, *byte);
        }
    }
    out.push(b'"');
}

/// Writes the inside of a quoted field of the combined format: what is not printable ASCII, and
/// `"` and `\`, become `\xHH`, as nginx writes them.
pub(super) fn write_combined_field(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f..=0xff => {
                out.extend_from_slice(b"\\x");
                write_hex(out, *byte);
            }
            _ => out.push(*byte),
        }
    }
}

fn write_code_point(out: &mut Vec<u8>, number: u8) {
    out.extend_from_slice(b"\\u00");
    write_hex(out, number);
}

fn write_hex(out: &mut Vec<u8>, byte: u8) {
    for digit in [byte >> 4, byte & 0xf] {
        out.push(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
    }
}
