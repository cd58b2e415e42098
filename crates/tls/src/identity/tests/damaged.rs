//! Files that were changed or cut on their way.

use super::*;

#[test]
fn a_byte_order_mark_is_named_wherever_it_hides_a_section() {
    let files = Files::new();
    let (leaf, issuer, key) = issued(&["a.example"]);
    let plain_key = files.write("key.pem", &key);
    let plain_chain = files.write("chain.pem", leaf.clone() + &issuer);
    // In front, and in the middle of files that were put together: the issuer alone would be left, or the leaf.
    for chain in [format!("\u{feff}{leaf}{issuer}"), format!("{leaf}\u{feff}{issuer}")] {
        let message = error(&files.write("marked.pem", chain), &plain_key).to_string();
        assert!(message.contains("certificate") && message.contains("(BOM)"), "{message}");
        assert!(message.contains("sed -i"), "{message}");
    }
    let message =
        error(&plain_chain, &files.write("marked-key.pem", format!("\u{feff}{key}"))).to_string();
    assert!(message.starts_with("the private key") && message.contains("(BOM)"), "{message}");
    let wide: Vec<u8> =
        "\u{feff}".encode_utf16().chain(leaf.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let message = error(&files.write("wide.pem", wide), &plain_key).to_string();
    assert!(message.contains("UTF-16") && message.contains("iconv"), "{message}");
}

/// Files that an editor marked and other programs read.
#[test]
fn a_byte_order_mark_before_other_text_hides_nothing() {
    let files = Files::new();
    let (leaf, issuer, key) = issued(&["a.example"]);
    for text in ["# ours\n", "Bag Attributes\r\n", "\n"] {
        let chain = files.write("chain.pem", format!("\u{feff}{text}{leaf}{issuer}"));
        let key = files.write("key.pem", format!("\u{feff}{text}{key}"));
        let (identity, _) = load(&chain, &key).expect("an identity");
        assert_eq!(identity.certified().cert.len(), 2, "{text:?}");
    }
}

/// Wherever a file ends too early, nothing of what it has is said: it may be a key.
#[test]
fn a_cut_file_is_told_in_words_alone() {
    let files = Files::new();
    let (leaf, issuer, key) = issued(&["a.example"]);
    let chain = files.write("chain.pem", leaf + &issuer);
    let body = key.lines().nth(1).expect("a line").to_owned();
    let mut broken: Vec<String> = (1..key.len()).map(|end| key[..end].to_owned()).collect();
    broken.push(key.replace(&body[8..16], "!?!?!?!?"));
    broken.push(key.replacen("-----\n", "--\n", 1));
    for text in broken {
        let path = files.write("cut.pem", &text);
        let Err(error) = load(&chain, &path) else { continue };
        let message = error.to_string();
        let words: String = message.replace(&path.display().to_string(), "");
        assert!(!words.contains(&body[..8]) && !words.contains(&body[16..24]), "{message}");
        let is_list =
            words.split(|it: char| !it.is_ascii_digit()).filter(|it| it.len() > 1).count() > 3;
        assert!(!is_list && !words.contains('\n'), "{message}");
    }
    let cut = files.write("half.pem", &key[..key.len() / 2]);
    let message = error(&chain, &cut).to_string();
    assert!(message.contains("no `-----END` line, so the file is cut off"), "{message}");
}
