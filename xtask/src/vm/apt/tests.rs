use super::*;

fn mirror(security: Option<&str>) -> Mirror {
    Mirror { archive: "http://mirror.example/debian".into(), security: security.map(str::to_owned) }
}

#[test]
fn the_mirror_is_found_in_deb822_sources() {
    let text = "Types: deb\n# http://old.example/archive/debian\nURIs: http://mirror.example/debian\nSuites: x\n\n\
                Types: deb\nURIs: http://mirror.example/debian-security/\n";
    assert_eq!(Mirror::find(text), Some(mirror(Some("http://mirror.example/debian-security"))));
}

#[test]
fn the_mirror_is_found_in_one_line_sources() {
    let text = "# deb http://commented.example/debian x main\n\
                deb https://other.example/node_20.x nodistro main\n\
                deb [arch=amd64] http://mirror.example/debian/ bookworm main\n";
    assert_eq!(Mirror::find(text), Some(mirror(None)));
}

#[test]
fn a_machine_without_a_debian_mirror_has_none() {
    assert_eq!(Mirror::find("deb http://mirror.example/ubuntu noble main\n"), None);
}

#[test]
fn security_suites_come_from_the_security_archive_or_not_at_all() {
    let suites = ["trixie", "trixie-security"];
    let both =
        sources_list(&suites, &["deb"], &mirror(Some("http://mirror.example/debian-security")));
    assert!(both.contains("http://mirror.example/debian trixie main\n"), "{both}");
    assert!(
        both.contains("http://mirror.example/debian-security trixie-security main\n"),
        "{both}"
    );
    let one = sources_list(&suites, &["deb"], &mirror(None));
    assert_eq!(one.lines().count(), 1, "{one}");
}

#[test]
fn dependency_lists_keep_real_packages_only() {
    let text = "linux-image-cloud-amd64\n  Depends: linux-image-7.3.4-cloud-amd64\nlinux-image-7.3.4-cloud-amd64\n\
                 |Depends: kmod\n<linux-initramfs-tool>\nkmod\n";
    assert_eq!(
        package_names(text),
        ["linux-image-cloud-amd64", "linux-image-7.3.4-cloud-amd64", "kmod"]
    );
}
