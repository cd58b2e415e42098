//! nginx and OpenSSL of Debian sid, taken out of the `measure` image so that the machine's own packages stay as they are. They run
//! with their own dynamic linker, which is what lets them live on an older system without a chroot.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{self, create_folder};
use crate::process;
use crate::vm::cache::Cache;
use crate::vm::image::Image;

pub struct ReferencePrograms {
    tree: PathBuf,
}

impl ReferencePrograms {
    /// Unpacks them on first use.
    pub fn obtain(cache: &Cache) -> Result<Self, String> {
        let image = Image::Measure.obtain(cache)?;
        let packages = files::read(image.with_file_name("packages"))?;
        let tree = cache.obtain("nginx", &packages, |folder| unpack(&image, folder))?;
        Ok(Self { tree })
    }

    /// Returns their folder, as `kettle-bench` wants to know it.
    pub fn tree(&self) -> &Path {
        &self.tree
    }
}

fn unpack(image: &Path, folder: &Path) -> Result<(), String> {
    create_folder(&folder.join("usr-lib"))?;
    for request in [
        format!("dump /usr/sbin/nginx {}/nginx", folder.display()),
        format!("rdump /usr/lib/x86_64-linux-gnu {}/usr-lib", folder.display()),
        format!("rdump /etc/ssl {}", folder.display()),
    ] {
        process::run_quietly(Command::new("debugfs").arg("-R").arg(request).arg(image))?;
    }
    Ok(())
}
