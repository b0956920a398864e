//! Dependencies between the crates of the workspace point down only (`docs/architecture.md`).

use std::collections::BTreeMap;
use std::process::Command;

/// The crates from the bottom up. A crate may depend on those before it.
const LAYERS: &[&str] = &[
    "tidings-wire",
    "tidings-feed",
    "tidings-storage",
    "tidings-journal",
    "tidings-auth",
    "tidings-documents",
    "tidings-channels",
    "tidings-gate",
    "tidings-quic",
    "tidings-web",
    "tidings-client",
    "tidings-server",
    "tidings-testkit",
    "tidings-bench",
    "xtask",
];

/// Crates of the core, which stay free of runtimes and sockets.
const PURE: &[&str] = &[
    "tidings-wire",
    "tidings-feed",
    "tidings-storage",
    "tidings-journal",
    "tidings-channels",
];

/// What a crate of the core must not name.
const SHELL_ONLY: &[&str] = &["tokio", "quinn", "hyper", "tracing-subscriber", "socket2"];

#[test]
fn dependencies_point_down() {
    for (name, dependencies) in workspace() {
        let own = layer(&name);
        for dependency in dependencies
            .iter()
            .filter(|name| LAYERS.contains(&name.as_str()))
        {
            assert!(
                layer(dependency) < own,
                "{name} must not depend on {dependency}"
            );
        }
    }
}

#[test]
fn the_core_names_no_runtime_and_no_socket() {
    let workspace = workspace();
    for name in PURE {
        let dependencies = workspace
            .get(*name)
            .unwrap_or_else(|| panic!("{name} is missing"));
        for dependency in dependencies {
            assert!(
                !SHELL_ONLY.contains(&dependency.as_str()),
                "{name} is core and must not depend on {dependency}"
            );
        }
    }
}

fn layer(name: &str) -> usize {
    LAYERS
        .iter()
        .position(|layer| *layer == name)
        .unwrap_or_else(|| panic!("{name} has no layer: add it to LAYERS and the architecture"))
}

/// Every crate of the workspace with its dependencies, those for tests and builds left out.
fn workspace() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .output()
        .expect("cargo metadata runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let packages = metadata["packages"]
        .as_array()
        .expect("packages are a list");
    packages
        .iter()
        .map(|package| (text(&package["name"]), dependencies(package)))
        .collect()
}

fn dependencies(package: &serde_json::Value) -> Vec<String> {
    let all = package["dependencies"]
        .as_array()
        .expect("dependencies are a list");
    all.iter()
        .filter(|one| one["kind"].is_null())
        .map(|one| text(&one["name"]))
        .collect()
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().expect("names are text").to_owned()
}
