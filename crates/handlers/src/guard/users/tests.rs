use super::*;

fn mistake(text: &str) -> (usize, String) {
    let (line, wrong) = Users::parse(text, 1).err().unwrap();
    (line, wrong.why)
}

#[test]
fn hashes_that_are_guessed_quickly_are_mistakes_with_their_line() {
    for hash in ["$apr1$x$y", "rl4Cz1qfSQyJ6", "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "secret", ""] {
        let (line, why) = mistake(&format!("# users\n\nbob:{hash}"));
        assert_eq!((line, why.contains("bcrypt")), (3, true), "{hash}: {why}");
        assert!(hash.is_empty() || !why.contains(hash), "{why}");
    }
    assert_eq!(mistake("").0, 0);
    assert_eq!(mistake("nobody").0, 1);
    assert_eq!(mistake("bob:$2y$05$short").0, 1);
    assert_eq!(mistake("bob:$argon2id$v=19$m=4194304,t=9,p=1$c2FsdHNhbHQ$aGFzaGhhc2g").0, 1);
}

#[test]
fn hashes_that_take_more_memory_than_there_is_for_them_are_mistakes() {
    let mib = |mib: u64| Some(mib << 20);
    for (kibibytes, threads, memory, is_taken) in [
        (65_536, 4, None, true),
        (262_145, 1, None, false),
        (19_456, 1, mib(128), true),
        (65_536, 1, mib(128), false),
        (65_536, 1, mib(256), true),
        (65_536, 2, mib(256), false),
    ] {
        let outcome = refuse_large(kibibytes, threads, memory);
        assert_eq!(outcome.is_ok(), is_taken, "{kibibytes} {threads} {memory:?}");
    }
    let why = refuse_large(65_536, 1, mib(128)).unwrap_err();
    assert!(why.ends_with("at most m=32768"), "{why}");
}

#[test]
fn both_kinds_of_hashes_are_checked() {
    let bcrypt = bcrypt::hash("secret", 4).unwrap().replacen("$2b$", "$2y$", 1);
    let argon2 = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$";
    let mut hash = [0; 32];
    let params = Params::new(64, 1, 1, None).unwrap();
    let hasher = Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    hasher.hash_password_into(b"secret", b"somesalt", &mut hash).unwrap();
    let hash = base64::Engine::encode(&base64::engine::general_purpose::STANDARD_NO_PAD, hash);
    let text = format!("ann:{bcrypt}:remark\nbob:{argon2}{hash}\n");
    let Ok(users) = Users::parse(&text, 1) else { panic!("{text}") };
    for name in ["ann", "bob", "nobody"] {
        let (hash, is_known) = users.hash(name);
        assert_eq!(is_known, name != "nobody");
        assert!(hash.fits(b"secret"), "the decoy is a hash like the others");
        assert!(!hash.fits(b"Secret") && !hash.fits(b""), "{name}");
    }
    let twice = format!("ann:{bcrypt}\nann:{bcrypt}");
    assert_eq!(mistake(&twice), (2, "`ann` is there already".to_owned()));
}
