//! The guests' first file system: busybox, the modules to load at boot, the script that mounts the disks and hands over, and, for
//! guests whose instructions are counted, those disks themselves.
//! Written as a `newc` cpio archive, the format of the kernel's Documentation/driver-api/early-userspace/buffer-format.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::at;

/// Builds the archive. The read-only disks are left out where the guest has drives for them.
pub fn build(
    busybox: &Path,
    modules: &[PathBuf],
    disks: Option<&[PathBuf]>,
) -> Result<Vec<u8>, String> {
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "proc", "sys", "modules", "disk", "overlay", "root"] {
        archive.add(folder, FOLDER_MODE, &[]);
    }
    archive.add("bin/busybox", PROGRAM_MODE, &read(busybox)?);
    for module in modules {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        archive.add(&format!("modules/{name}"), FILE_MODE, &read(module)?);
    }
    if let Some(disks) = disks {
        archive.add("disks", FOLDER_MODE, &[]);
        for (position, disk) in disks.iter().enumerate() {
            archive.add(&format!("disks/{position}"), FILE_MODE, &read(disk)?);
        }
    }
    archive.add("init", PROGRAM_MODE, INIT.as_bytes());
    Ok(archive.finish())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| at(path, &error))
}

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.inode += 1;
        let content_bytes = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let name_bytes = u32::try_from(name.len()).unwrap_or(u32::MAX).saturating_add(1);
        let link_count = 1;
        let fields =
            [self.inode, mode, 0, 0, link_count, 0, content_bytes, 0, 0, 0, 0, name_bytes, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

const FOLDER_MODE: u32 = 0o040_755;
const PROGRAM_MODE: u32 = 0o100_755;
const FILE_MODE: u32 = 0o100_644;

/// Any failure ends the script, and with it the guest: the kernel panics and the machine stops.
const INIT: &str = r#"#!/bin/busybox sh
set -e
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
    insmod "$module" || echo "init: $module not loaded"
done
mkdir -p /disk/root /disk/kettle
if [ -d /disks ]; then
    # A drive's interrupts come when the host is ready, and no two runs would be alike.
    for disk in 0 1 2; do losetup -r /dev/loop$disk /disks/$disk; done
    root=/dev/loop0 modules=/dev/loop1 kettle=/dev/loop2
else
    root=/dev/vda modules=/dev/vdb kettle=/dev/vdc
fi
mount -t ext4 -o ro $root /disk/root
mount -t tmpfs -o size=50% tmpfs /overlay
mkdir /overlay/upper /overlay/work
mount -t overlay -o lowerdir=/disk/root,upperdir=/overlay/upper,workdir=/overlay/work overlay /root
mount -t ext4 -o ro $modules /root/usr/lib/modules
mount -t ext4 -o ro $kettle /root/kettle
if [ -d /disks ]; then mount -t tmpfs tmpfs /root/tmp; else mount -t ext4 /dev/vdd /root/tmp; fi
chmod 1777 /root/tmp
mount --move /proc /root/proc
mount --move /sys /root/sys
mount --move /dev /root/dev
exec switch_root /root /bin/sh /kettle/guest/start
"#;

#[cfg(test)]
mod tests;
