use super::*;

fn merged(answers: &[&str]) -> Vec<String> {
    let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
    merge(&answers).iter().map(|path| path.display().to_string()).collect()
}

#[test]
fn a_shared_dependency_is_loaded_once_and_first() {
    let order = merged(&[
        "insmod /m/crc16.ko \ninsmod /m/jbd2.ko \ninsmod /m/ext4.ko \n",
        "insmod /m/cryptd.ko.xz \ninsmod /m/aesni-intel.ko.xz \n",
        "insmod /m/crc16.ko \ninsmod /m/cryptd.ko.xz \ninsmod /m/ghash-clmulni-intel.ko.xz \n",
    ]);
    assert_eq!(
        order,
        [
            "/m/crc16.ko",
            "/m/jbd2.ko",
            "/m/ext4.ko",
            "/m/cryptd.ko.xz",
            "/m/aesni-intel.ko.xz",
            "/m/ghash-clmulni-intel.ko.xz",
        ]
    );
}

#[test]
fn what_is_compiled_in_is_not_loaded() {
    assert_eq!(merged(&["builtin virtio_pci\n", "insmod /m/tls.ko\n"]), ["/m/tls.ko"]);
}

#[test]
fn module_options_are_not_part_of_the_path() {
    assert_eq!(merged(&["insmod /m/tls.ko debug=1\n"]), ["/m/tls.ko"]);
}

#[test]
fn extracted_modules_sort_in_loading_order() {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("a.ko");
    std::fs::write(&module, "module").unwrap();
    std::fs::write(folder.path().join("z.ko"), "module").unwrap();
    extract(&[folder.path().join("z.ko"), module], &folder.path().join("order")).unwrap();
    assert!(folder.path().join("order/01-a.ko").is_file());
}
