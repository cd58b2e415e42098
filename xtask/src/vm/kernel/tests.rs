use super::*;

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn one_package_holds_an_old_kernel() {
    let dependencies = names(&[
        "linux-image-cloud-amd64",
        "linux-image-6.1.0-50-cloud-amd64",
        "linux-base",
        "kmod",
    ]);
    assert_eq!(kernel_packages(&dependencies), ["linux-image-6.1.0-50-cloud-amd64"]);
}

#[test]
fn a_split_kernel_needs_all_its_parts() {
    let dependencies = names(&[
        "linux-image-cloud-amd64",
        "linux-modules-cloud-amd64",
        "linux-modules-7.3.4+deb13-cloud-amd64",
        "linux-image-7.3.4+deb13-cloud-amd64",
        "linux-base-7.3.4+deb13-cloud-amd64",
        "linux-binary-7.3.4+deb13-cloud-amd64",
        "linux-modules-7.3.4+deb13-cloud-amd64",
    ]);
    assert_eq!(
        kernel_packages(&dependencies),
        [
            "linux-base-7.3.4+deb13-cloud-amd64",
            "linux-binary-7.3.4+deb13-cloud-amd64",
            "linux-image-7.3.4+deb13-cloud-amd64",
            "linux-modules-7.3.4+deb13-cloud-amd64",
        ]
    );
}

#[test]
fn every_kernel_is_found_by_its_name() {
    for kernel in Kernel::ALL {
        assert_eq!(Kernel::parse(kernel.name()), Ok(kernel));
    }
    assert!(Kernel::parse("5.10").is_err());
}
