//! One image, one writer, one disk: how long it takes, and what it takes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use farrier_tests::images::server::{ImageServer, Reply};

use super::class::{Class, Digest};
use super::device::{LoopDevice, SpeedLimit};
use super::images;
use super::processes::{Timed, pipe};
use super::{Figures, Writer};
use crate::host::command::{command, run, run_quietly};
use crate::host::workspace::Workspace;

/// The Python agent's way to an image.
const DOWNLOAD: &str = include_str!("download.py");

/// Images and a disk, which goes before the folder that its file is in.
pub struct Race {
    limit: Option<SpeedLimit>,
    device: LoopDevice,
    folder: Folder,
    driver: PathBuf,
    size_mib: u64,
    /// By image and algorithm; conductors have them from the image service.
    digests: BTreeMap<(String, &'static str), String>,
}

impl Race {
    /// Makes the images and the disk. Without a `speed` the disk is never held.
    pub fn prepare(workspace: &Workspace, driver: PathBuf, size_mib: u64, is_limited: bool) -> Result<Self> {
        let folder = Folder(workspace.cache().join(format!("bench-write-{}", std::process::id())));
        fs::create_dir_all(&folder.0)?;
        println!("making images of {size_mib} MiB in {}", folder.0.display());
        images::make(&folder.0, size_mib)?;
        let mut digests = BTreeMap::new();
        for entry in fs::read_dir(&folder.0)? {
            let path = entry?.path();
            let name = path.file_name().context("an image has no name")?.to_string_lossy().into_owned();
            for algorithm in Digest::ALL.map(Digest::algorithm) {
                let text = run_quietly(command(format!("{algorithm}sum")).arg(&path))?;
                let digest = text.split_whitespace().next().context("no digest was printed")?;
                digests.insert((name.clone(), algorithm), digest.to_owned());
            }
        }
        let device = LoopDevice::create(&folder.0, size_mib + 64)?;
        let limit = is_limited.then(|| SpeedLimit::prepare(&folder.0)).transpose()?;
        Ok(Self { limit, device, folder, driver, size_mib, digests })
    }

    /// Measures a plain write.
    pub fn measure_plain(&self, class: Class) -> Result<f64> {
        self.plain()?;
        run(&mut command("sync"))?;
        self.held(class, || self.plain())
    }

    /// Measures a writer, in whose round the plain write took so long.
    pub fn measure(
        &self,
        (class, digest): (Class, Digest),
        image: &'static str,
        writer: Writer,
        plain_seconds: f64,
    ) -> Result<Figures> {
        self.restore(image)?;
        let figures = self.held(class, || self.written((class, digest), image, writer))?;
        Ok(Figures { plain_seconds, ..figures })
    }

    /// Brings the disk into the state in which it is for everybody: full of data, nothing under way; and
    /// the image into the server's memory.
    fn restore(&self, image: &str) -> Result<()> {
        self.plain()?;
        run(&mut command("sync"))?;
        images::warm(&self.folder.0.join(image))
    }

    fn held<T>(&self, class: Class, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some((limit, speed)) = self.limit.as_ref().zip(class.mib_per_second()) else { return work() };
        limit.set(Some(speed))?;
        let outcome = work();
        limit.set(None)?;
        outcome
    }

    fn written(
        &self,
        (class, digest): (Class, Digest),
        image: &'static str,
        writer: Writer,
    ) -> Result<Figures> {
        let server = ImageServer::start(vec![Reply::File(self.folder.0.join(image))])?;
        let mut timed = Timed { folder: &self.folder.0, files: Vec::new() };
        let before = self.device.bytes_written()?;
        let started = Instant::now();
        let reported = match writer {
            Writer::Farrier => Some(self.farrier(&mut timed, (image, digest), &server)?),
            Writer::CurlDd => self.curl_dd(&mut timed, image, &server).map(|()| None)?,
            Writer::DownloadConvert => {
                self.download_convert(&mut timed, (image, digest), &server).map(|()| None)?
            }
        };
        let seconds = started.elapsed().as_secs_f64();
        // The kernel counts zeros that are asked for as if they were transferred.
        let bytes_written = match reported {
            Some(bytes) => bytes,
            None => self.device.bytes_written()? - before,
        };
        let (cpu_seconds, peak_rss_bytes) = timed.read()?;
        let plain_seconds = f64::NAN;
        Ok(Figures {
            class,
            digest,
            image: image.to_owned(),
            writer,
            seconds,
            plain_seconds,
            bytes_written,
            peak_rss_bytes,
            cpu_seconds,
        })
    }

    /// Seconds of a direct sequential write of the same size.
    fn plain(&self) -> Result<f64> {
        let started = Instant::now();
        let count = format!("count={}", self.size_mib);
        let mut dd = command("dd");
        dd.args(["if=/dev/zero", "bs=1M", "oflag=direct", "conv=fsync,notrunc", "status=none", &count]);
        run(dd.arg(self.device.output()))?;
        Ok(started.elapsed().as_secs_f64())
    }

    /// Bytes written as data.
    fn farrier(
        &self,
        timed: &mut Timed<'_>,
        (image, digest): (&str, Digest),
        server: &ImageServer,
    ) -> Result<u64> {
        let mut driver = timed.command(&self.driver);
        driver.arg(self.device.path()).args([&server.url(), digest.algorithm(), self.digest(image, digest)?]);
        let report: serde_json::Value = serde_json::from_str(&run_quietly(&mut driver)?)?;
        report["bytes_written"].as_u64().context("the driver's report has no bytes_written")
    }

    fn digest(&self, image: &str, digest: Digest) -> Result<&str> {
        let found = self.digests.get(&(image.to_owned(), digest.algorithm()));
        found.map(String::as_str).context("the image has no digest")
    }

    fn curl_dd(&self, timed: &mut Timed<'_>, image: &str, server: &ImageServer) -> Result<()> {
        let mut curl = timed.command(Path::new("curl"));
        curl.args(["-sSf", &server.url()]);
        let mut stages = vec![curl];
        if let Some(program) = [("gz", "gzip"), ("zst", "zstd")].iter().find(|(end, _)| image.ends_with(end))
        {
            let mut unpacker = timed.command(Path::new(program.1));
            unpacker.arg("-dcq");
            stages.push(unpacker);
        }
        let mut dd = timed.command(Path::new("dd"));
        dd.args(["bs=1M", "iflag=fullblock", "oflag=direct", "conv=fsync,notrunc", "status=none"]);
        dd.arg(self.device.output());
        stages.push(dd);
        pipe(stages)
    }

    fn download_convert(
        &self,
        timed: &mut Timed<'_>,
        (image, digest): (&str, Digest),
        server: &ImageServer,
    ) -> Result<()> {
        // The Python agent's temporary folder is in memory too.
        let copy = Path::new("/dev/shm").join(format!("farrier-bench-{}", std::process::id()));
        let format = if image.ends_with("qcow2") { "qcow2" } else { "raw" };
        let mut download = timed.command(Path::new("python3"));
        download.args(["-c", DOWNLOAD]).arg(server.url()).arg(&copy);
        download.args([digest.algorithm(), self.digest(image, digest)?]);
        let mut convert = timed.command(Path::new("qemu-img"));
        convert.args(["convert", "-O", "host_device", "-t", "directsync", "-S", "0", "-f", format, "-W"]);
        convert.arg(&copy).arg(self.device.path()).env("MALLOC_ARENA_MAX", "3");
        let outcome = run(&mut download).and_then(|()| run(&mut convert));
        let removed = fs::remove_file(&copy);
        outcome?;
        removed.with_context(|| format!("cannot remove {}", copy.display()))
    }
}

/// Removed in the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays: {error}", self.0.display());
        }
    }
}
