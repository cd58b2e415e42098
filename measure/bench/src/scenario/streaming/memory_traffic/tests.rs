use super::*;

fn folder_with(counters: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (domain, text) in counters {
        let domain = folder.path().join("mon_data").join(domain);
        fs::create_dir_all(&domain).unwrap();
        fs::write(domain.join("mbm_total_bytes"), text).unwrap();
    }
    folder
}

#[test]
fn counters_of_all_domains_add_up() {
    let folder = folder_with(&[("mon_L3_00", "100\n"), ("mon_L3_01", "23\n")]);
    assert_eq!(MemoryTraffic::find(folder.path()).unwrap().bytes(), Ok(123));
}

#[test]
fn a_machine_without_resctrl_is_told_how_to_mount_it() {
    let folder = tempfile::tempdir().unwrap();
    let why = MemoryTraffic::find(folder.path()).unwrap_err();
    assert!(why.starts_with("n/a: ") && why.contains("mount -t resctrl"));
}

#[test]
fn a_processor_that_does_not_count_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("mon_data/mon_L3_00")).unwrap();
    assert!(MemoryTraffic::find(folder.path()).unwrap_err().contains("does not count"));
}

#[test]
fn a_counter_that_is_unavailable_is_no_number() {
    let folder = folder_with(&[("mon_L3_00", "Unavailable\n")]);
    assert!(MemoryTraffic::find(folder.path()).unwrap_err().ends_with("Unavailable"));
}
