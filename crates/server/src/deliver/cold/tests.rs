use std::os::fd::AsFd;
use std::time::Duration;

use kettle_kernel::file_system::FileSystem;
use kettle_runtime::disk::Device;

use super::*;

#[test]
fn a_device_that_is_found_slow_is_read_by_threads_from_there_on() {
    let file = tempfile::tempfile().unwrap();
    let device = Arc::new(Device::new(FileSystem::of(file.as_fd()).unwrap()));
    let file = OpenFile::new(file.into(), 1 << 20, Arc::clone(&device));
    let access = |touch: &dyn Fn()| access_at_once(CoarseClock, &file, touch);
    device.refused_to_say();
    (0..100).for_each(|_| device.took(Duration::ZERO));
    assert!(access(&|| ()) == Access::Here);
    let slow = || device.held_up(Duration::from_secs(1), CoarseClock.monotonic());
    assert!(access(&slow) == Access::OnThread);
}
