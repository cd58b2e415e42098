//! A container image as a tar of an OCI layout, made without a daemon: the program, the libraries it is linked with, and nothing else
//! that runs. It is read by `podman load` and `docker load`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::release::{Release, git};
use super::sbom;
use super::stage::{copy, readable, set_mode};
use crate::files::{self, at, create_folder};
use crate::{checkout, process};

pub fn make(release: &Release) -> Result<PathBuf, String> {
    let work = release.work("oci")?;
    let blobs = work.join("image/blobs/sha256");
    create_folder(&blobs)?;
    let tree = work.join("tree");
    stage(release, &tree)?;
    let own = work.join("own");
    for folder in WRITABLE {
        create_folder(&own.join(folder))?;
    }
    readable(&own)?;
    let layers = [(&tree, "0", "tree.tar"), (&own, USER, "own.tar")]
        .map(|(folder, owner, name)| layer(release, folder, owner, &work.join(name), &blobs));
    let layers = layers.into_iter().collect::<Result<Vec<Layer>, String>>()?;
    let config = add_json(&blobs, &image_config(release, &layers)?)?;
    let described: Vec<Value> = layers.iter().map(|it| it.blob.described(LAYER)).collect();
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": config.described(CONFIG), "layers": described,
    });
    let manifest = add_json(&blobs, &manifest)?;
    let image = work.join("image");
    write_index(release, &image, &manifest, &config, &layers)?;
    readable(&image)?;
    let archive = release.output.join(format!("kettle-{}-oci.tar", release.version));
    release.tar(&image, "0", &archive)?;
    Ok(archive)
}

/// Lays out what the image holds for everybody.
fn stage(release: &Release, tree: &Path) -> Result<(), String> {
    let program = release.programs.join("kettle");
    copy(&program, &tree.join("usr/bin/kettle"))?;
    let listing = process::read(Command::new("ldd").arg(&program))?;
    let libraries: Vec<&str> = libraries(&listing).collect();
    for library in &libraries {
        copy(Path::new(library), &tree.join(library.trim_start_matches('/')))?;
    }
    let workspace = checkout::workspace();
    for (from, to) in [
        ("packaging/oci/kettle.toml", "etc/kettle/kettle.toml"),
        ("packaging/welcome.html", "srv/www/index.html"),
        ("LICENSE-MIT", "usr/share/doc/kettle/LICENSE-MIT"),
        ("LICENSE-APACHE", "usr/share/doc/kettle/LICENSE-APACHE"),
    ] {
        copy(&workspace.join(from), &tree.join(to))?;
    }
    // The authorities that `kettle originate` and backends with TLS trust.
    copy(Path::new(AUTHORITIES), &tree.join(AUTHORITIES.trim_start_matches('/')))?;
    let bill = format!("usr/share/doc/kettle/{}", sbom::FILE);
    let sbom = sbom::text(release)?;
    for (name, text) in [
        (
            "etc/passwd",
            format!(
                "root:x:0:0:root:/:/none\nkettle:x:{USER}:{USER}:kettle:/var/lib/kettle:/none\n"
            ),
        ),
        ("etc/group", format!("root:x:0:\nkettle:x:{USER}:\n")),
        ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned()),
        (bill.as_str(), sbom),
    ] {
        files::write(tree.join(name), text)?;
    }
    readable(tree)?;
    for name in ["/usr/bin/kettle"].iter().chain(&libraries) {
        set_mode(&tree.join(name.trim_start_matches('/')), 0o755)?;
    }
    create_folder(&tree.join("tmp"))?;
    set_mode(&tree.join("tmp"), 0o1777)
}

/// The files that `ldd` names.
fn libraries(listing: &str) -> impl Iterator<Item = &str> {
    listing.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
}

fn image_config(release: &Release, layers: &[Layer]) -> Result<Value, String> {
    let date = ["--utc", &format!("--date=@{}", release.epoch), "+%FT%TZ"];
    let created = process::read(release.command("date").args(date))?.trim().to_owned();
    let diffs: Vec<String> =
        layers.iter().map(|layer| format!("sha256:{}", layer.unpacked)).collect();
    Ok(json!({
        "architecture": release.architecture.debian(), "os": "linux", "created": created,
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": ["/usr/bin/kettle"],
            "Cmd": ["run", "/etc/kettle/kettle.toml"],
            "Env": ["PATH=/usr/bin"],
            "ExposedPorts": { "8443/tcp": {} },
            "WorkingDir": "/srv/www",
            "StopSignal": "SIGTERM",
            // Docker's; the OCI's own specification has no such field, and others pass over it.
            "Healthcheck": {
                "Test": ["CMD", "/usr/bin/kettle", "ctl", "status"],
                "Interval": 10_000_000_000_u64, "Timeout": 5_000_000_000_u64, "Retries": 3,
            },
            "Labels": {
                "org.opencontainers.image.title": "kettle",
                "org.opencontainers.image.description": "HTTPS server that encrypts where it costs least",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.revision": git(&["rev-parse", "HEAD"])?,
                "org.opencontainers.image.created": created,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
                "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
            },
        },
        "rootfs": { "type": "layers", "diff_ids": diffs },
    }))
}

/// Writes what a reader begins with: the OCI's index, and what `docker save` of old has.
fn write_index(
    release: &Release,
    image: &Path,
    manifest: &Blob,
    config: &Blob,
    layers: &[Layer],
) -> Result<(), String> {
    let tag = format!("kettle:{}", release.version);
    let mut described = manifest.described(MANIFEST);
    described["annotations"] = json!({
        "org.opencontainers.image.ref.name": release.version, "io.containerd.image.name": tag,
    });
    let blobs = |blob: &Blob| format!("blobs/sha256/{}", blob.sha256);
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [described] });
    let old = json!([{
        "Config": blobs(config), "RepoTags": [tag],
        "Layers": layers.iter().map(|layer| blobs(&layer.blob)).collect::<Vec<String>>(),
    }]);
    for (name, value) in [
        ("oci-layout", json!({ "imageLayoutVersion": "1.0.0" })),
        ("index.json", index),
        ("manifest.json", old),
    ] {
        files::write(image.join(name), value.to_string())?;
    }
    Ok(())
}

/// A file named by its hash.
struct Blob {
    sha256: String,
    bytes: u64,
}

impl Blob {
    fn described(&self, kind: &str) -> Value {
        json!({ "mediaType": kind, "digest": format!("sha256:{}", self.sha256), "size": self.bytes })
    }
}

struct Layer {
    blob: Blob,
    /// The hash before compression.
    unpacked: String,
}

fn layer(
    release: &Release,
    tree: &Path,
    owner: &str,
    archive: &Path,
    blobs: &Path,
) -> Result<Layer, String> {
    release.tar(tree, owner, archive)?;
    let unpacked = sha256(archive)?;
    process::run_quietly(Command::new("gzip").args(["-9", "-n"]).arg(archive))?;
    let packed = archive.with_extension("tar.gz");
    let bytes = fs::read(&packed).map_err(|error| at(&packed, &error))?;
    Ok(Layer { blob: add(blobs, &bytes)?, unpacked })
}

fn add_json(blobs: &Path, value: &Value) -> Result<Blob, String> {
    add(blobs, value.to_string().as_bytes())
}

fn add(blobs: &Path, bytes: &[u8]) -> Result<Blob, String> {
    let draft = blobs.join("draft");
    files::write(&draft, bytes)?;
    let sha256 = sha256(&draft)?;
    files::rename(&draft, blobs.join(&sha256))?;
    Ok(Blob { sha256, bytes: bytes.len() as u64 })
}

pub fn sha256(file: &Path) -> Result<String, String> {
    let line = process::read(Command::new("sha256sum").arg(file))?;
    Ok(line.split_whitespace().next().unwrap_or_default().to_owned())
}

/// The user of the image: a number far from accounts of people.
pub const USER: &str = "65532";

/// The folders to which that user may write.
const WRITABLE: &[&str] = &["run/kettle", "var/cache/kettle", "var/lib/kettle", "var/log/kettle"];

const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_what_ldd_finds() {
        let listing = "\tlinux-vdso.so.1 (0x7ff)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f)\n\t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        let found: Vec<&str> = libraries(listing).collect();
        assert_eq!(found, ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }
}
