//! The images of the benchmark.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Result;

use crate::host::command::{command, run};

const MIB: usize = 1 << 20;

/// Makes each image in the folder: raw, qcow2 and packed.
pub fn make(folder: &Path, size_mib: u64) -> Result<()> {
    for (name, zeros) in [("dense", false), ("sparse", true)] {
        let raw = folder.join(format!("{name}.raw"));
        make_raw(&raw, size_mib, zeros)?;
        let qcow2 = folder.join(format!("{name}.qcow2"));
        run(command("qemu-img").args(["convert", "-f", "raw", "-O", "qcow2"]).arg(&raw).arg(&qcow2))?;
    }
    run(command("zstd").args(["-q", "-3", "--keep"]).arg(folder.join("dense.raw")))?;
    run(command("gzip").args(["-1", "--keep"]).arg(folder.join("dense.raw")))
}

/// Reads an image once, so that the server has it in memory.
pub fn warm(path: &Path) -> Result<()> {
    io::copy(&mut File::open(path)?, &mut io::sink())?;
    Ok(())
}

/// Data that packs to about half; with `zeros`, four of five MiB are zeros.
fn make_raw(path: &Path, size_mib: u64, zeros: bool) -> Result<()> {
    let mut file = BufWriter::with_capacity(MIB, File::create(path)?);
    let mut state = 1_u64;
    let mut data = vec![0; MIB];
    for number in 0..size_mib {
        if zeros && number % 5 != 0 {
            file.write_all(&vec![0; MIB])?;
            continue;
        }
        for (index, word) in data.chunks_exact_mut(8).enumerate() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let text = u64::from_le_bytes(*b"farrier ");
            word.copy_from_slice(&if index % 64 < 32 { state } else { text }.to_le_bytes());
        }
        file.write_all(&data)?;
    }
    Ok(file.flush()?)
}
