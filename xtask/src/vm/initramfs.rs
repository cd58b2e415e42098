//! The guests' first file system: busybox, the modules to load at boot, the script that mounts the disks and hands over, and, for
//! guests whose instructions are counted, those disks themselves.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{self, Temporary, create_folder};
use crate::process;

/// Builds the archive, of the kind that kernels read (`newc`). The read-only disks are left out where the guest has drives for them.
pub fn build(
    archive: &Path,
    busybox: &Path,
    modules: &[PathBuf],
    disks: Option<&[PathBuf]>,
) -> Result<(), String> {
    let root = Temporary::of_run()?;
    for folder in ["bin", "dev", "proc", "sys", "modules", "disk", "overlay", "root"] {
        create_folder(&root.path(folder))?;
    }
    files::link(busybox, root.path("bin/busybox"))?;
    for module in modules {
        files::link(module, root.path("modules").join(files::name(module)))?;
    }
    if let Some(disks) = disks {
        create_folder(&root.path("disks"))?;
        for (position, disk) in disks.iter().enumerate() {
            files::link(disk, root.path("disks").join(position.to_string()))?;
        }
    }
    let init = root.path("init");
    files::write(&init, INIT)?;
    fs::set_permissions(&init, Permissions::from_mode(0o755))
        .map_err(|it| files::at(&init, &it))?;
    let script = "find . | sort | cpio --quiet --create --format=newc --dereference --owner=0:0";
    process::run_into(Command::new("sh").args(["-c", script]).current_dir(&root.0), archive)
}

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
