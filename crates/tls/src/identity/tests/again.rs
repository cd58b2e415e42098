//! Loading again what was loaded before: only what has changed is read.

use std::os::unix::fs::symlink;

use super::pem::{AHEAD, READ};
use super::*;

/// A folder with a chain, a key and a staple, which were there before they are read.
struct Again {
    files: Files,
}

impl Again {
    fn new() -> Self {
        AHEAD.set(Duration::from_secs(60));
        let again = Self { files: Files::new() };
        again.replace("chain.pem", [OCSP_LEAF, OCSP_AUTHORITY].concat());
        again.replace("key.pem", OCSP_LEAF_KEY_SEC1);
        again.replace("good.der", OCSP_GOOD);
        again
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.write("beside", "").with_file_name(name)
    }

    /// As programs do it that renew certificates.
    fn replace(&self, name: &str, content: impl AsRef<[u8]>) {
        let beside = self.files.write("new", content);
        fs::rename(&beside, beside.with_file_name(name)).expect("a file");
    }

    fn renew(&self, name: &str, (leaf, issuer, key): &(String, String, String)) {
        self.replace(&format!("{name}.pem"), [leaf.as_str(), issuer].concat());
        self.replace(&format!("{name}.key"), key);
    }

    fn load(&self, names: [&str; 2], staple: Option<&str>, now: SystemTime) -> Arc<Identity> {
        let [chain, key] = names.map(|name| self.path(name));
        let staple = staple.map(|name| self.path(name));
        let loaded = Identity::load_at(&chain, &key, staple.as_deref(), now);
        Arc::new(loaded.expect("an identity").0)
    }

    /// Gives the names of what was read, too.
    fn again(
        &self,
        before: &Arc<Identity>,
        names: [&str; 2],
        staple: Option<&str>,
        now: SystemTime,
    ) -> (Loaded, Vec<String>) {
        let [chain, key] = names.map(|name| self.path(name));
        let staple = staple.map(|name| self.path(name));
        READ.take();
        let loaded = before.load_again_at(&chain, &key, staple.as_deref(), now);
        let name = |path: PathBuf| path.file_name().map(|it| it.display().to_string());
        (loaded, READ.take().into_iter().filter_map(name).collect())
    }
}

/// Returns what is said of files that do not load.
fn said(loaded: Loaded) -> String {
    loaded.map(|_| ()).expect_err("no identity").to_string()
}

type Loaded = Result<(Arc<Identity>, Vec<IdentityWarning>), IdentityError>;

const BOTH: [&str; 2] = ["chain.pem", "key.pem"];

#[test]
fn nothing_is_read_again_that_did_not_change_and_all_is_said_again() {
    let again = Again::new();
    let staple = Some("good.der");
    let exposed = fs::Permissions::from_mode(0o604);
    fs::set_permissions(again.path("key.pem"), exposed).expect("a mode");
    let before = again.load(BOTH, staple, fixture_time());
    let (loaded, read) = again.again(&before, BOTH, staple, fixture_time());
    let (identity, warnings) = loaded.expect("an identity");
    assert!(Arc::ptr_eq(&identity, &before));
    assert!(read.is_empty(), "{read:?}");
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.to_string().contains("can be read by every user"), "{warning}");
    // Nobody touched the files, and time went on.
    let (loaded, read) =
        again.again(&before, BOTH, staple, before.not_after() + Duration::from_secs(1));
    let (identity, warnings) = loaded.expect("an identity");
    assert!(read.is_empty(), "{read:?}");
    for words in ["chain.pem expired at", "good.der ran out at"] {
        assert!(warnings.iter().any(|it| it.to_string().contains(words)), "{warnings:?}");
    }
    assert!(Arc::ptr_eq(&identity.pair, &before.pair) && identity.stapled.is_none());
}

#[test]
fn a_file_that_changed_just_now_is_read_again() {
    let again = Again::new();
    AHEAD.set(Duration::ZERO);
    let before = again.load(BOTH, None, fixture_time());
    let (loaded, read) = again.again(&before, BOTH, None, fixture_time());
    assert_eq!(read, BOTH);
    assert!(!Arc::ptr_eq(&loaded.expect("an identity").0, &before));
}

#[test]
fn a_renewed_chain_is_tried_with_the_key_that_is_in_use() {
    let again = Again::new();
    let authority = Authority::new("Example Issuer");
    let key = KeyPair::generate().expect("a key");
    let chain = || authority.sign(&parameters(&["a.example"]), &key) + &authority.own_pem();
    again.replace("a.pem", chain());
    again.replace("a.key", key.serialize_pem());
    let names = ["a.pem", "a.key"];
    let before = again.load(names, None, now());
    again.replace("a.pem", chain());
    let (loaded, read) = again.again(&before, names, None, now());
    let renewed = loaded.expect("an identity").0;
    assert_eq!(read, ["a.pem"]);
    assert_ne!(renewed.fingerprint_sha256(), before.fingerprint_sha256());
    assert!(Arc::ptr_eq(&renewed.certified().key, &before.certified().key));
    // It is as well known as one that was read whole.
    let (loaded, read) = again.again(&renewed, names, None, now());
    assert!(Arc::ptr_eq(&loaded.expect("an identity").0, &renewed) && read.is_empty());

    // One for another key does not fit, and nothing that was known is lost.
    let other = issued(&["a.example"]);
    again.renew("b", &other);
    fs::rename(again.path("b.pem"), again.path("a.pem")).expect("a file");
    let (loaded, read) = again.again(&renewed, names, None, now());
    assert!(said(loaded).contains("does not belong to the certificate"));
    assert_eq!(read, ["a.pem"]);
    fs::rename(again.path("b.key"), again.path("a.key")).expect("a file");
    let (loaded, read) = again.again(&renewed, names, None, now());
    assert_eq!(read, names);
    // A key alone that is another's is found, too.
    let last = loaded.expect("an identity").0;
    again.replace("a.key", KeyPair::generate().expect("a key").serialize_pem());
    let (loaded, read) = again.again(&last, names, None, now());
    assert!(said(loaded).contains("does not belong to the certificate"));
    assert_eq!(read, ["a.key"]);
}

/// As Let's Encrypt's clients have it.
#[test]
fn links_are_followed_to_what_they_lead_to_now() {
    let again = Again::new();
    for version in ["1", "2"] {
        again.renew(version, &issued(&["a.example"]));
    }
    let turn = |version: &str| {
        for kind in ["pem", "key"] {
            let link = again.path(&format!("live.{kind}"));
            let _ = fs::remove_file(&link);
            symlink(format!("{version}.{kind}"), link).expect("a link");
        }
    };
    let names = ["live.pem", "live.key"];
    turn("1");
    let before = again.load(names, None, now());
    turn("1");
    let (loaded, read) = again.again(&before, names, None, now());
    assert!(Arc::ptr_eq(&loaded.expect("an identity").0, &before) && read.is_empty());
    turn("2");
    let (loaded, read) = again.again(&before, names, None, now());
    assert_ne!(loaded.expect("an identity").0.fingerprint_sha256(), before.fingerprint_sha256());
    assert_eq!(read, names);
}

#[test]
fn chain_and_key_of_one_file_are_read_once_or_not_at_all() {
    let again = Again::new();
    let one = |(leaf, issuer, key): (String, String, String)| leaf + &issuer + &key;
    again.replace("both.pem", one(issued(&["a.example"])));
    let names = ["both.pem"; 2];
    let before = again.load(names, None, now());
    assert!(again.again(&before, names, None, now()).1.is_empty());
    again.replace("both.pem", one(issued(&["a.example"])));
    let (loaded, read) = again.again(&before, names, None, now());
    assert!(loaded.is_ok());
    assert_eq!(read, ["both.pem"]);
}

#[test]
fn a_staple_is_read_for_itself_and_sent_while_it_is_good() {
    let again = Again::new();
    let staple = Some("good.der");
    let before = again.load(BOTH, staple, fixture_time());
    again.replace("good.der", OCSP_GOOD);
    let (loaded, read) = again.again(&before, BOTH, staple, fixture_time());
    let renewed = loaded.expect("an identity").0;
    assert_eq!(read, ["good.der"]);
    assert!(Arc::ptr_eq(&renewed.pair, &before.pair));
    assert_eq!(renewed.certified_at(fixture_time()).ocsp.as_deref(), Some(OCSP_GOOD));
    // It ends, is not sent any more, and is not read for that.
    let later = fixture_time() + Duration::from_secs(8 * 24 * 60 * 60);
    let (loaded, read) = again.again(&renewed, BOTH, staple, later);
    let ended = loaded.expect("an identity").0;
    assert!(read.is_empty() && ended.stapled.is_none(), "{read:?}");
    let (loaded, read) = again.again(&ended, BOTH, staple, later);
    assert!(Arc::ptr_eq(&loaded.expect("an identity").0, &ended) && read.is_empty());
    // The clock was wrong: what was not sent was not kept.
    let (loaded, read) = again.again(&ended, BOTH, staple, fixture_time());
    assert_eq!(read, ["good.der"]);
    let sent = loaded.expect("an identity").0;
    assert_eq!(sent.certified_at(fixture_time()).ocsp.as_deref(), Some(OCSP_GOOD));
    // One that is not named any more is not sent.
    let (loaded, read) = again.again(&sent, BOTH, None, fixture_time());
    assert!(read.is_empty() && loaded.expect("an identity").0.stapled.is_none());
}

#[test]
fn a_file_that_may_not_be_read_any_more_or_is_gone_is_missed() {
    let again = Again::new();
    let before = again.load(BOTH, None, fixture_time());
    fs::rename(again.path("key.pem"), again.path("moved.pem")).expect("a file");
    let (loaded, _) = again.again(&before, BOTH, None, fixture_time());
    assert!(said(loaded).starts_with("cannot read the private key"));
    assert!(again.again(&before, ["chain.pem", "moved.pem"], None, fixture_time()).0.is_ok());
}
