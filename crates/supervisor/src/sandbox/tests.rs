use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn config(folder: &Path, text: &str) -> Config {
    let listener = "[[listener]]\naddress = \"127.0.0.1:8443\"\n";
    kettle_config::parse(&format!("{listener}{text}"), &folder.join("conf/kettle.toml")).unwrap()
}

fn site(root: &Path) -> String {
    format!("[[site]]\nnames = [\"_\"]\nself_signed = true\n[[site.route]]\nroot = {root:?}\n")
}

fn allowed(config: &Config) -> Files {
    files_of(config, &needs(config), &mut RealPaths::default())
}

#[test]
fn what_takes_the_place_of_a_root_or_a_file_can_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    for name in ["conf", "www/releases/1", "certificates/live", "certificates/archive", "other"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    symlink("releases/1", folder.join("www/current")).unwrap();
    fs::write(folder.join("certificates/archive/chain1.pem"), "").unwrap();
    symlink("../archive/chain1.pem", folder.join("certificates/live/chain.pem")).unwrap();
    let chain = folder.join("certificates/live/chain.pem");
    let text = format!(
        "[[site]]\nnames = [\"_\"]\n[[site.certificate]]\nchain = {chain:?}\nkey = {chain:?}\n\
         [[site.route]]\nroot = {:?}\n",
        folder.join("www/current/")
    );
    let files = allowed(&config(&folder, &text));
    let reads = |path: &str| files.read.iter().any(|read| folder.join(path).starts_with(read));
    // The configuration itself is not there.
    assert!(reads("conf/other.toml"));
    assert!(reads("www/releases/2/index.html"));
    assert!(reads("certificates/archive/chain2.pem"));
    assert!(reads("certificates/live/other.pem"));
    assert!(!reads("other/file"));
    assert!(!reads("certificates"));
    assert!(!files.connect);
    assert!(!files.read.contains(&PathBuf::from("/")) && !files.read.contains(&"/etc".into()));
    assert!(files.write.iter().all(|path| !path.starts_with(&folder)));
}

#[test]
fn the_systems_folders_are_not_opened_for_one_that_lies_in_them() {
    let around = |path: &Path, is_file| {
        let mut folders = RealPaths::default().around(path, is_file);
        let own = path.to_owned();
        folders.retain(|folder| *folder != own);
        folders
    };
    let homes = Path::new("/home");
    for (path, folder) in [
        (Path::new("/var/www").to_owned(), None),
        (Path::new("/srv/site").to_owned(), Some(Path::new("/srv").to_owned())),
        (homes.join("somebody/site"), None),
        (homes.join("somebody/project/site"), Some(homes.join("somebody/project"))),
    ] {
        assert_eq!(around(&path, false), Vec::from_iter(folder), "{}", path.display());
    }
    // A file that is edited is another one.
    assert_eq!(around(Path::new("/etc/kettle.toml"), true), [Path::new("/etc")]);
    assert!(around(Path::new("/kettle.toml"), true).is_empty());
}

#[test]
fn what_a_reload_names_elsewhere_takes_another_start() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    for name in ["conf/self-signed", "sites/one", "sites/two", "elsewhere/three"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    let of = |root: &str| config(&folder, &site(&folder.join(root)));
    let state = format!("[server]\nstate_directory = {:?}\n", folder.join("conf"));
    let with_state = |text: String| config(&folder, &format!("{text}{state}"));
    let started = with_state(site(&folder.join("sites/one")));
    let sandbox = knowing(allowed(&started));
    let at = |diagnostics: Vec<Diagnostic>| {
        diagnostics.into_iter().map(|it| it.line).collect::<Vec<_>>()
    };

    assert_eq!(at(sandbox.refusals(&started, false)), [0; 0]);
    assert_eq!(at(sandbox.refusals(&with_state(site(&folder.join("sites/two"))), false)), [0; 0]);
    let diagnostics = sandbox.refusals(&with_state(site(&folder.join("elsewhere/three"))), false);
    assert!(diagnostics[0].to_string().contains("elsewhere/three"), "{}", diagnostics[0]);
    assert_eq!(at(diagnostics), [7]);
    let follow = site(&folder.join("sites/one")) + "symlinks = \"follow\"\n";
    assert_eq!(sandbox.refusals(&with_state(follow), false).len(), 1);
    let backend = "[[backend]]\nname = \"b\"\n[[backend.server]]\naddress = \"127.0.0.1:80\"\n";
    let with_backend = with_state(site(&folder.join("sites/one")) + backend);
    assert_eq!(sandbox.refusals(&with_backend, false).len(), 1);
    // Nobody is confined.
    assert_eq!(at(Sandbox::default().refusals(&of("elsewhere/three"), false)), [0; 0]);
}

#[test]
fn names_that_are_looked_up_take_what_says_how() {
    let folder = tempfile::tempdir().unwrap();
    let backend = "[[backend]]\nname = \"b\"\n[[backend.server]]\naddress = \"localhost:80\"\n";
    let files = allowed(&config(folder.path(), &(site(folder.path()) + backend)));
    assert!(files.connect && files.read.contains(&"/etc".into()));
}

#[test]
fn a_log_is_written_with_all_that_rotation_makes_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let state = format!("[server]\nstate_directory = {folder:?}\n");
    let text = format!("{state}[log]\naccess = {:?}\n", folder.join("logs/access.log"));
    fs::create_dir(folder.join("logs")).unwrap();
    fs::create_dir(folder.join("self-signed")).unwrap();
    let files = allowed(&config(&folder, &(site(&folder) + &text)));
    assert!(files.write.contains(&folder.join("logs")));
    let sandbox = knowing(files);
    let refused = |log: &str| {
        let text = format!("[log]\naccess = {log:?}\n{state}{}", site(&folder));
        sandbox.refusals(&config(&folder, &text), false).len()
    };
    assert_eq!(refused(folder.join("logs/other.log").to_str().unwrap()), 0);
    // Beside what is kept for the server, but not in it.
    assert_eq!(refused(folder.join("other.log").to_str().unwrap()), 1);
    assert_eq!(refused("/dev/null"), 0);
    assert_eq!(refused("/nowhere/access.log"), 1);
    assert_eq!(
        written_around(Path::new("/dev/full"), &Secrets::default()),
        [Path::new("/dev/full")]
    );
    assert_eq!(
        written_around(Path::new("access.log"), &Secrets::default()),
        [std::env::current_dir().unwrap()]
    );
}

#[test]
fn a_log_that_is_a_link_is_written_where_it_leads_to() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    for name in ["links", "data"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    fs::write(folder.join("data/a.log"), "").unwrap();
    symlink("../data/a.log", folder.join("links/a.log")).unwrap();
    let around = written_around(&folder.join("links/a.log"), &Secrets::default());
    assert!(around.contains(&folder.join("links")) && around.contains(&folder.join("data")));
}

#[test]
fn what_another_took_the_place_of_takes_another_start() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    for name in ["conf/self-signed", "a/www", "a/new"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    let state = format!("[server]\nstate_directory = {:?}\n", folder.join("conf"));
    let started = config(&folder, &(site(&folder.join("a/www")) + &state));
    let sandbox = knowing(allowed(&started));
    let www = folder.join("a/www");
    let old = folder.join("a/old");
    // Beside the root, as deployments do it.
    fs::rename(&www, &old).unwrap();
    fs::rename(folder.join("a/new"), &www).unwrap();
    assert!(sandbox.refusals(&started, false).is_empty());
    // With the folder around it.
    fs::rename(folder.join("a"), folder.join("b")).unwrap();
    fs::create_dir_all(&www).unwrap();
    assert_eq!(sandbox.refusals(&started, false).len(), 1);
    // Certificates are read anew all the same.
    assert!(sandbox.refusals(&started, true).is_empty());
}

#[test]
fn a_renewal_asks_for_the_files_it_reads_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let lay_out = |name: &str| {
        fs::create_dir_all(folder.join(name)).unwrap();
        for file in ["kettle.toml", "404.html", "chain.pem"] {
            fs::write(folder.join(name).join(file), "").unwrap();
        }
    };
    for name in ["conf", "pages", "certificates", "sites/www"] {
        lay_out(name);
    }
    let chain = folder.join("certificates/chain.pem");
    let started = config(
        &folder,
        &format!(
            "[[site]]\nnames = [\"_\"]\nerror_pages = {{ 404 = {:?} }}\n\
             [[site.certificate]]\nchain = {chain:?}\nkey = {chain:?}\n\
             [[site.route]]\nroot = {:?}\n",
            folder.join("pages/404.html"),
            folder.join("sites/www")
        ),
    );
    let sandbox = knowing(allowed(&started));
    let replace = |name: &str| {
        fs::rename(folder.join(name), folder.join(format!("old-{name}"))).unwrap();
        lay_out(name);
    };
    for name in ["conf", "pages"] {
        replace(name);
    }
    assert_eq!(sandbox.refusals(&started, false).len(), 2);
    assert_eq!(sandbox.refusals(&started, true).len(), 0);
    replace("certificates");
    assert_eq!(sandbox.refusals(&started, true).len(), 2, "the chain and the key");
}

fn knowing(files: Files) -> Sandbox {
    let mut sandbox = Sandbox::default();
    sandbox.know(files);
    sandbox
}

/// Of ten thousand sites with files in one folder, that folder is asked about once, and the kernel gets one rule.
#[test]
fn what_a_further_site_costs_does_not_grow_with_their_number_or_the_depth_of_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let deep = folder.join("a/b/c/d/e/f/g/h");
    fs::create_dir_all(&deep).unwrap();
    symlink(&deep, folder.join("link")).unwrap();
    let looks = |folder: &Path, sites: usize| {
        let mut text = String::new();
        for site in 0..sites {
            let [chain, key] =
                ["pem", "key"].map(|kind| folder.join(format!("{site}.{kind}")).into_os_string());
            fs::write(&chain, "").unwrap();
            fs::write(&key, "").unwrap();
            text += &format!(
                "[[site]]\nnames = [\"s{site}.example\"]\n[[site.certificate]]\nchain = {chain:?}\nkey = {key:?}\n\
                 [[site.route]]\nroot = {folder:?}\n"
            );
        }
        let config = config(folder, &text);
        let mut paths = RealPaths::default();
        let files = files_of(&config, &needs(&config), &mut paths);
        let at_start = paths.asked;
        let sandbox = knowing(files.clone());
        let allowed = sandbox.still_there(&files, Secrets::default());
        let mut paths = RealPaths::default();
        assert!(needs(&config).iter().all(|need| allowed.has(need, &mut paths)));
        (at_start, paths.asked, files.read.len())
    };
    for folder in [deep, folder.join("link")] {
        let [few, more, many] = [10, 20, 40].map(|sites| looks(&folder, sites));
        assert_eq!([more.2, many.2], [few.2; 2], "a rule for each file");
        let grown =
            |one: (usize, usize, usize), two: (usize, usize, usize)| [two.0 - one.0, two.1 - one.1];
        assert_eq!(grown(more, many), grown(few, more).map(|looks| looks * 2));
        // One at the chain, one at the key, one at the root, and one at what that leads to where it is a link.
        assert!(grown(few, more).into_iter().all(|looks| looks <= 10 * 4), "{few:?} {more:?}");
    }
}

#[test]
fn of_what_is_fetched_the_certificates_are_read_and_the_accounts_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let state = folder.join("state");
    for name in ["self-signed", "bodies", "acme/certificates", "acme-accounts"] {
        fs::create_dir_all(state.join(name)).unwrap();
    }
    let acme = "[[acme]]\nname = \"own\"\ndirectory = \"letsencrypt\"\naccept_terms = true\n";
    let fetching = "[[site]]\nnames = [\"a.org\"]\nacme = {}\nroute = [{ root = \"/srv\" }]\n";
    let server = format!("[server]\nstate_directory = {state:?}\n");
    let fetching = config(&folder, &format!("{server}{acme}{fetching}"));
    let files = allowed(&fetching);
    let is_among = |list: &[PathBuf], name: &str| {
        list.iter().any(|allowed| state.join(name).starts_with(allowed))
    };
    assert!(is_among(&files.read, "acme/certificates/a.org/current/key.pem"));
    assert!(!is_among(&files.write, "acme/certificates/a.org/current/key.pem"));
    for name in ["acme-accounts/own/key.pem", "acme/state"] {
        assert!(!is_among(&files.read, name) && !is_among(&files.write, name), "{name}");
    }
    assert!(is_among(&files.write, "bodies/1") && is_among(&files.write, "self-signed/1"));

    // A reload cannot bring the first of them.
    let before = format!("{server}{}", site(Path::new("/srv")));
    let sandbox = knowing(allowed(&config(&folder, &before)));
    let refused = sandbox.refusals(&fetching, false);
    assert!(refused[0].to_string().contains("acme/certificates"), "{refused:?}");
    fs::remove_dir(state.join("acme/certificates")).unwrap();
    assert_eq!(sandbox.refusals(&fetching, false).len(), 1);
}

#[test]
fn no_root_around_the_keys_of_accounts_opens_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let state = folder.join("state");
    for name in
        ["www", "bodies", "acme/certificates", "acme/orders/a.org", "acme-accounts", "other/deep"]
    {
        fs::create_dir_all(state.join(name)).unwrap();
    }
    symlink(&state, folder.join("link")).unwrap();
    let acme = "[[acme]]\nname = \"own\"\ndirectory = \"letsencrypt\"\naccept_terms = true\n";
    let server = format!("[server]\nstate_directory = {state:?}\n");
    for (root, more) in [
        (state.join("www"), ""),
        (state.clone(), ""),
        (folder.clone(), ""),
        (folder.join("link"), ""),
        (folder.join("link/www"), ""),
        (state.join("acme-accounts"), ""),
        (state.join("acme/orders/a.org"), ""),
        (PathBuf::from("/srv"), "symlinks = \"follow\"\n"),
    ] {
        let site = format!(
            "[[site]]\nnames = [\"a.org\"]\nacme = {{}}\n[[site.route]]\nroot = {root:?}\n{more}"
        );
        let config = config(&folder, &format!("{server}{acme}{site}"));
        let files = allowed(&config);
        let is_among = |list: &[PathBuf], name: &str| {
            list.iter().any(|allowed| state.join(name).starts_with(allowed))
        };
        for name in ["acme-accounts/own.json", "acme/orders/a.org/key.pem"] {
            assert!(
                !is_among(&files.read, name) && !is_among(&files.write, name),
                "{root:?} {name}"
            );
        }
        assert!(is_among(&files.read, "acme/certificates/a.org/current/key.pem"));
        if root == state || !more.is_empty() {
            assert!(is_among(&files.read, "other/deep/file"), "{root:?}");
        }
        // The same configuration is no reload that is refused.
        let is_secret = root.starts_with(state.join("acme-accounts"))
            || root.starts_with(state.join("acme/orders"));
        let refused = knowing(files).refusals(&config, false);
        assert_eq!(refused.is_empty(), !is_secret, "{root:?}: {refused:?}");
    }
    // Nor may a log be rotated there.
    let secrets = Secrets(vec![state.join("acme-accounts")]);
    assert_eq!(written_around(&state.join("a.log"), &secrets), [state.join("a.log")]);
}
