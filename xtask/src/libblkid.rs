//! Builds libblkid for musl: the distribution's static library is made for another C library.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::command::{command, run, run_quietly};
use crate::workspace::Workspace;
use crate::zig::Zig;

/// The release of util-linux in Debian 12.
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

/// Has `target/libblkid/<arch>/libblkid.a`, where linux/build.rs looks for it. Another architecture than
/// this machine's is compiled by `zig`.
pub fn build(workspace: &Workspace, arch: &str, zig: Option<&Zig>) -> Result<()> {
    let folder = workspace.target.join("libblkid").join(arch);
    let library = folder.join("libblkid.a");
    if library.exists() {
        return Ok(());
    }
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
    // Renamed into place, so that a broken build leaves no library behind.
    fs::rename(work.join(".libs/libblkid.a"), &library).context("util-linux built no libblkid.a")?;
    fs::remove_dir_all(&work)?;
    Ok(())
}

/// A folder with the kernel's headers alone: musl-gcc does not look where the other C library's are.
fn kernel_headers(work: &Path, arch: &str) -> Result<std::path::PathBuf> {
    let headers = work.join("kernel-headers");
    fs::create_dir(&headers)?;
    let system = Path::new("/usr/include");
    symlink(system.join(format!("{arch}-linux-gnu/asm")), headers.join("asm"))?;
    for name in ["asm-generic", "linux", "mtd"] {
        symlink(system.join(name), headers.join(name))?;
    }
    Ok(headers)
}
