//! The folder of a store that is not there yet.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::process::geteuid;

use super::*;

fn setup(directory: &str) -> Setup {
    Setup::default().more(&format!("[[cache]]\nname = \"main\"\ndirectory = \"{directory}\"\n"))
}

#[test]
fn a_start_makes_the_folder_of_a_cache_and_a_check_does_not() {
    let (_, folder) = setup("cache").lay_out();
    let config = folder.config().display().to_string();
    let checked = Tool::kettle(["check", "--config", &config]).succeed();
    assert!(checked.contains("is fine"), "{checked}");
    assert!(!folder.path("cache").exists());
    let kettle = Kettle::start(setup("cache"));
    let made = fs::metadata(kettle.folder.path("cache")).unwrap();
    assert_eq!((made.mode() & 0o7777, made.uid()), (0o700, geteuid().as_raw()));
    let said = kettle.messages().text();
    assert!(said.contains("made the folder"), "{said}");
}

#[test]
fn a_folder_whose_parent_is_missing_is_a_mistake() {
    let (_, folder) = setup("above/cache").lay_out();
    let config = folder.config().display().to_string();
    for command in ["check", "run"] {
        let ended = Tool::kettle([command, "--config", &config]).output();
        assert!(!ended.status.success());
        let said = ended.text() + &ended.stderr;
        assert!(said.contains("cannot open the folder"), "{command}: {said}");
    }
    assert!(!folder.path("above").exists());
}

#[test]
fn a_reload_makes_no_folder() {
    // Confined to what was there at the start, and not.
    for (sandbox, why) in [("auto", "restart it"), ("off", "restart kettle: a start makes it")] {
        let kettle =
            Kettle::start(setup("cache").set("server", &format!("sandbox = \"{sandbox}\"")));
        kettle.folder.change_config("directory = \"cache\"", "directory = \"other\"");
        let ended = kettle.ctl(&["reload"]).output();
        assert!(!ended.status.success());
        let said = ended.text() + &ended.stderr;
        assert!(said.contains(why) || said.contains("restart kettle"), "{said}");
        assert!(!kettle.folder.path("other").exists());
    }
}
