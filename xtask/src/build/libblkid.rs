//! Builds libblkid for musl, and says where it is: the distribution's static library is made for another C library.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::zig::Zig;
use crate::host::command::{command, run, run_quietly};
use crate::host::workspace::Workspace;

/// The release of util-linux in Debian 12.
const VERSION: &str = "2.38.1";
const ARCHIVE: &str = "http://deb.debian.org/debian/pool/main/u/util-linux/util-linux_2.38.1.orig.tar.xz";
const SHA256: &str = "60492a19b44e6cf9a3ddff68325b333b8b52b6c59ce3ebd6a0ecaa4c5117e84f";

/// What is left out: every program, and what only those would use.
const LEFT_OUT: &[&str] = &[
    "--disable-all-programs",
    "--disable-nls",
    "--without-ncurses",
    "--without-ncursesw",
    "--without-python",
    "--without-systemd",
    "--without-tinfo",
    "--without-udev",
];

/// A libblkid for musl.
#[derive(Debug)]
pub struct Libblkid {
    /// `libblkid.a`, `blkid.pc`, and the header in `include`.
    folder: PathBuf,
    /// Where the C library's headers are.
    headers: Vec<PathBuf>,
}

impl Libblkid {
    /// Has `target/libblkid/<arch>`. Another architecture than this machine's is compiled by `zig`.
    pub fn build(workspace: &Workspace, arch: &str, zig: Option<&Zig>) -> Result<Self> {
        let folder = workspace.target.join("libblkid").join(arch);
        // Made last.
        if !folder.join("blkid.pc").exists() {
            compile(&folder, arch, zig)?;
        }
        let headers = match zig {
            Some(zig) => zig.headers(arch)?,
            None => vec![Path::new("/usr/include").join(format!("{arch}-linux-musl"))],
        };
        Ok(Self { folder, headers })
    }

    /// Has cargo find it for the target with this name, as variables have it: the crate asks pkg-config for the
    /// library and libclang for what its header declares.
    pub fn announce(&self, build: &mut Command, target: &str) {
        build.env(format!("PKG_CONFIG_ALLOW_CROSS_{target}"), "1");
        build.env(format!("PKG_CONFIG_LIBDIR_{target}"), &self.folder);
        let mut arguments = format!("-I{}", self.folder.join("include").display());
        for headers in &self.headers {
            arguments += &format!(" -isystem {}", headers.display());
        }
        build.env(format!("BINDGEN_EXTRA_CLANG_ARGS_{target}"), arguments);
    }
}

fn compile(folder: &Path, arch: &str, zig: Option<&Zig>) -> Result<()> {
    println!("Building libblkid for {arch}");
    let work = folder.join("work");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let archive = work.join("util-linux.tar.xz");
    run(command("curl").args(["-fsSL", "--retry", "3", "-o"]).arg(&archive).arg(ARCHIVE))?;
    let sum = run_quietly(command("sha256sum").arg(&archive))?;
    if !sum.starts_with(SHA256) {
        bail!("{ARCHIVE} is not the file it was: its SHA-256 must be {SHA256}");
    }
    run_quietly(command("tar").arg("-xf").arg(&archive).args(["--strip-components=1", "-C"]).arg(&work))?;
    let mut configure = command(work.join("configure"));
    if let Some(zig) = zig {
        configure.env("CC", &zig.compiler).env("AR", &zig.archiver).env("CFLAGS", "-O2 -fPIC");
    } else {
        let headers = kernel_headers(&work, arch)?;
        configure.env("CC", "musl-gcc").env("CFLAGS", format!("-O2 -fPIC -isystem {}", headers.display()));
    }
    run_quietly(
        configure
            .arg(format!("--host={arch}-linux-musl"))
            .args(["--enable-libblkid", "--enable-static", "--disable-shared", "--with-pic"])
            .args(LEFT_OUT)
            .current_dir(&work),
    )?;
    run_quietly(command("make").args(["-j4", "libblkid.la"]).current_dir(&work))?;
    let library = work.join(".libs/libblkid.a");
    fs::rename(library, folder.join("libblkid.a")).context("util-linux built no libblkid.a")?;
    let include = folder.join("include/blkid");
    fs::create_dir_all(&include)?;
    fs::rename(work.join("libblkid/src/blkid.h"), include.join("blkid.h"))
        .context("util-linux made no blkid.h")?;
    fs::remove_dir_all(&work)?;
    // Last, so that a broken build leaves nothing behind that is taken for a whole one.
    let description = format!(
        "Name: blkid\nDescription: Block device id library\nVersion: {VERSION}\n\
         Cflags: -I${{pcfiledir}}/include\nLibs: -L${{pcfiledir}} -lblkid\n"
    );
    fs::write(folder.join("blkid.pc"), description)?;
    Ok(())
}

/// A folder with the kernel's headers alone: musl-gcc does not look where the other C library's are.
fn kernel_headers(work: &Path, arch: &str) -> Result<PathBuf> {
    let headers = work.join("kernel-headers");
    fs::create_dir(&headers)?;
    let system = Path::new("/usr/include");
    symlink(system.join(format!("{arch}-linux-gnu/asm")), headers.join("asm"))?;
    for name in ["asm-generic", "linux", "mtd"] {
        symlink(system.join(name), headers.join(name))?;
    }
    Ok(headers)
}
