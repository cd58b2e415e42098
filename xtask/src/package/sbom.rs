//! The parts of the programs: a CycloneDX 1.5 bill of materials, from what cargo resolves and the hashes it locked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::release::Release;
use crate::files;
use crate::{checkout, process};

pub const FILE: &str = "kettle.cdx.json";

/// Writes it beside the packages.
pub fn make(release: &Release) -> Result<PathBuf, String> {
    let file = release.output.join(FILE);
    files::write(&file, text(release)?)?;
    Ok(file)
}

pub fn text(release: &Release) -> Result<String, String> {
    let mut cargo = checkout::cargo();
    cargo.args(["metadata", "--format-version=1", "--locked", "--filter-platform"]);
    let metadata = process::read(cargo.arg(release.architecture.target()))?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let lock = files::read(checkout::workspace().join("Cargo.lock"))?;
    let bill = bill(&metadata, &checksums(&lock)?, &release.version, &release.day);
    serde_json::to_string_pretty(&bill).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// The hash of each library, by name and version.
fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>, String> {
    let lock: toml::Table = lock.parse().map_err(|error| format!("Cargo.lock: {error}"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let field = |package: &toml::Value, name: &str| Some(package.get(name)?.as_str()?.to_owned());
    Ok(packages
        .filter_map(|it| {
            Some(((field(it, "name")?, field(it, "version")?), field(it, "checksum")?))
        })
        .collect())
}

fn bill(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
    version: &str,
    day: &str,
) -> Value {
    let edges = edges(metadata);
    let packages: BTreeMap<&str, &Value> =
        list(&metadata["packages"]).map(|it| (it["id"].as_str().unwrap_or_default(), it)).collect();
    let is_program = |it: &&&Value| it["name"] == "kettle" || it["name"] == "kettle-bench";
    let mut waiting: Vec<&str> =
        packages.iter().filter(|(_, it)| is_program(it)).map(|(id, _)| *id).collect();
    let mut used = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if used.insert(id) {
            waiting.extend(edges.get(id).into_iter().flatten());
        }
    }
    let reference = |id: &str| packages.get(id).map(|it| purl(it)).unwrap_or_default();
    let mut components: Vec<Value> =
        used.iter().filter_map(|id| Some(component(packages.get(id)?, checksums))).collect();
    components.sort_by_key(|it| it["bom-ref"].to_string());
    let mut dependencies: Vec<Value> = used
        .iter()
        .map(|id| {
            let on: BTreeSet<String> =
                edges.get(id).into_iter().flatten().map(|on| reference(on)).collect();
            json!({ "ref": reference(id), "dependsOn": on })
        })
        .collect();
    dependencies.sort_by_key(|it| it["ref"].to_string());
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": format!("{day}T00:00:00Z"),
            "component": {
                "type": "application", "bom-ref": "kettle-release", "name": "kettle", "version": version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    })
}

/// Returns what each package needs to run or to be built, but not to be tested.
fn edges(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let is_needed =
        |dependency: &Value| list(&dependency["dep_kinds"]).any(|it| it["kind"] != "dev");
    list(&metadata["resolve"]["nodes"])
        .filter_map(|node| {
            let needed = list(&node["deps"]).filter(|it| is_needed(it));
            Some((node["id"].as_str()?, needed.filter_map(|it| it["pkg"].as_str()).collect()))
        })
        .collect()
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let name = text("name");
    let version = text("version");
    let mut component = json!({
        "type": "library", "bom-ref": purl(package), "purl": purl(package), "name": name, "version": version,
    });
    // Before SPDX expressions a slash stood for a choice.
    let licence = text("license").replace('/', " OR ");
    if !licence.is_empty() {
        component["licenses"] = json!([{ "expression": licence }]);
    }
    if let Some(checksum) = checksums.get(&(name, version)) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

fn purl(package: &Value) -> String {
    let text = |name: &str| package[name].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", text("name"), text("version"))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_has_what_runs_and_not_what_tests() {
        let package = |name: &str, licence: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": licence });
        let needs = |pkg: &str, kind: Value| json!({ "pkg": pkg, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("kettle", "MIT"), package("a", "MIT/Apache-2.0"), package("b", "MIT"), package("t", "MIT")],
            "resolve": { "nodes": [
                { "id": "kettle", "deps": [needs("a", Value::Null), needs("t", json!("dev"))] },
                { "id": "a", "deps": [needs("b", json!("build"))] },
            ] },
        });
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ff\"\n";
        let bill = bill(&metadata, &checksums(lock).unwrap(), "1.0.0", "2026-11-22");
        let names: Vec<&str> =
            list(&bill["components"]).filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(names, ["a", "b", "kettle"]);
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["components"][0]["hashes"][0]["content"], "ff");
        assert_eq!(
            bill["dependencies"][2],
            json!({ "ref": "pkg:cargo/kettle@1.0.0", "dependsOn": ["pkg:cargo/a@1.0.0"] })
        );
    }
}
