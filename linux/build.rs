//! Tells the linker where the static libblkid lies that `cargo xtask dist` builds for musl.
//!
//! Builds for the host link the distribution's library and need nothing from here.

use std::env;
use std::path::{Path, PathBuf};

/// From `OUT_DIR` up to the target folder: `<target>/<triple>/<profile>/build/<crate>/out`.
const LEVELS_TO_TARGET: usize = 5;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() != Ok("musl") {
        return;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let target = out.ancestors().nth(LEVELS_TO_TARGET).unwrap_or(Path::new("target"));
    let folder = target.join("libblkid").join(arch);
    let library = folder.join("libblkid.a");
    println!("cargo::rerun-if-changed={}", library.display());
    if !library.exists() {
        println!("cargo::error={} is missing: run cargo xtask dist, which builds it", library.display());
    }
    println!("cargo::rustc-link-search=native={}", folder.display());
}
