use super::*;

#[test]
fn an_entry_is_header_name_and_content_on_four_byte_borders() {
    let mut archive = Archive::default();
    archive.add("odd", FILE_MODE, b"12345");
    let expected = b"070701\
        00000001000081a400000000000000000000000100000000\
        000000050000000000000000000000000000000000000004\
        00000000odd\0\0\0"
        .as_slice();
    let (head, content) = archive.bytes.split_at(116);
    assert_eq!(head, &expected[..116]);
    assert_eq!(content, b"12345\0\0\0");
}

#[test]
fn the_archive_ends_with_its_trailer() {
    let mut archive = Archive::default();
    archive.add("file", FILE_MODE, b"x");
    let bytes = archive.finish();
    assert_eq!(bytes.len() % 4, 0);
    assert!(bytes.windows(10).any(|window| window == b"TRAILER!!!"));
}

#[test]
fn the_first_program_is_part_of_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let busybox = folder.path().join("busybox");
    fs::write(&busybox, "the busybox").unwrap();
    let archive = build(&busybox, &[], None).unwrap();
    let text = String::from_utf8_lossy(&archive);
    assert!(text.contains("the busybox") && text.contains("switch_root"));
}

#[test]
fn disks_travel_in_the_archive_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::write(&disk, "the disk").unwrap();
    let archive = build(&disk, &[], Some(std::slice::from_ref(&disk))).unwrap();
    assert!(String::from_utf8_lossy(&archive).contains("disks/0\0"));
}
