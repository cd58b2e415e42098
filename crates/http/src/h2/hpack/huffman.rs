//! The Huffman code of strings (RFC 7541 §5.2, Appendix B), read a symbol at a time.
//!
//! The code is canonical: in the order of length and then of symbol, each code is the one before
//! it plus one, with zeros behind it where the length grows. So the lengths say all of it.

/// Appends what `coded` stands for to `text`. `None` if it holds the code of EOS, or does not end
/// with less than a byte of padding, all ones.
pub(super) fn decode(coded: &[u8], text: &mut Vec<u8>) -> Option<()> {
    text.reserve((coded.len() * 8 / CODE_BITS_MIN).max(TEXT_BYTES_MIN));
    let mut rest = coded;
    // The next bits, from the top; zeros behind them.
    let mut window: u64 = 0;
    let mut window_bits: u32 = 0;
    loop {
        if window_bits <= 32 {
            if let Some((four, after)) = rest.split_first_chunk::<4>() {
                window |= u64::from(u32::from_be_bytes(*four)) << (32 - window_bits);
                window_bits += 32;
                rest = after;
            } else {
                for byte in std::mem::take(&mut rest) {
                    window |= u64::from(*byte) << (56 - window_bits);
                    window_bits += 8;
                }
            }
        }
        let (symbol, code_bits) = match SHORT_CODES.get((window >> 56) as usize)? {
            (_, 0) => long_code((window >> 32) as u32)?,
            (symbol, code_bits) => (*symbol, u32::from(*code_bits)),
        };
        if code_bits > window_bits {
            break;
        }
        text.push(symbol);
        window <<= code_bits;
        window_bits -= code_bits;
    }
    // The rest is the beginning of a code that does not end here.
    (window_bits < 8 && window.leading_ones() == window_bits).then_some(())
}

/// The symbol and the length of the code that 32 bits begin with. `None` for EOS.
fn long_code(window: u32) -> Option<(u8, u32)> {
    let group = GROUPS.iter().find(|group| window <= group.last)?;
    let offset = (window - group.first) >> (32 - group.bits);
    let symbol = *SYMBOLS.get(group.position + offset as usize)?;
    Some((symbol, group.bits))
}

/// The codes of one length.
#[derive(Clone, Copy)]
struct Group {
    bits: u32,
    /// The first code, from the top of 32 bits, with zeros behind it.
    first: u32,
    /// The last code with ones behind it. Before `first` if there is no code of this length.
    last: u32,
    /// The place of the first code's symbol among [`SYMBOLS`].
    position: usize,
}

/// The codes by length, which is also their order as numbers from the top.
static GROUPS: [Group; CODE_BITS_MAX - CODE_BITS_MIN + 1] = groups();

/// The bytes in the order of their codes. EOS, whose code is the last one, would come next.
static SYMBOLS: [u8; 256] = symbols();

/// The symbol and the length of the code that a byte begins with; 0 for a length above eight bits.
static SHORT_CODES: [(u8, u8); 256] = short_codes();

#[expect(clippy::indexing_slicing, reason = "the compiler runs it, and would refuse")]
const fn symbols() -> [u8; 256] {
    let mut symbols = [0; 256];
    let mut position = 0;
    let mut bits = CODE_BITS_MIN;
    while bits <= CODE_BITS_MAX {
        let mut symbol = 0;
        while symbol < 256 {
            if CODE_BITS[symbol] as usize == bits {
                symbols[position] = symbol as u8;
                position += 1;
            }
            symbol += 1;
        }
        bits += 1;
    }
    symbols
}

#[expect(clippy::indexing_slicing, reason = "the compiler runs it, and would refuse")]
const fn groups() -> [Group; CODE_BITS_MAX - CODE_BITS_MIN + 1] {
    let mut groups = [Group { bits: 0, first: 0, last: 0, position: 0 }; _];
    // One past the codes so far, from the top of 32 bits: the next code of any length.
    let mut next: u64 = 0;
    let mut position = 0;
    let mut bits = CODE_BITS_MIN;
    while bits <= CODE_BITS_MAX {
        let first = next;
        let mut codes = 0;
        let mut symbol = 0;
        while symbol < CODE_BITS.len() {
            codes += (CODE_BITS[symbol] as usize == bits) as usize;
            symbol += 1;
        }
        next += (codes as u64) << (32 - bits);
        groups[bits - CODE_BITS_MIN] =
            Group { bits: bits as u32, first: first as u32, last: (next - 1) as u32, position };
        position += codes;
        bits += 1;
    }
    // The code leaves nothing out: every 32 bits begin with one of it.
    assert!(next == 1 << 32);
    groups
}

#[expect(clippy::indexing_slicing, reason = "the compiler runs it, and would refuse")]
const fn short_codes() -> [(u8, u8); 256] {
    let mut codes = [(0, 0); 256];
    let mut first_byte = 0;
    let mut position = 0;
    while CODE_BITS[SYMBOLS[position] as usize] <= 8 {
        let symbol = SYMBOLS[position];
        let bits = CODE_BITS[symbol as usize];
        // Every byte that begins with the code.
        let end = first_byte + (1 << (8 - bits));
        while first_byte < end {
            codes[first_byte] = (symbol, bits);
            first_byte += 1;
        }
        position += 1;
    }
    codes
}

const CODE_BITS_MIN: usize = 5;
const CODE_BITS_MAX: usize = 30;

/// Room for the text of most strings, so that a buffer that is used again seldom grows.
const TEXT_BYTES_MIN: usize = 256;

/// The length of the code of each byte, and of EOS behind them (Appendix B).
const CODE_BITS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

#[cfg(test)]
mod tests;
