//! `cargo xtask bench write`: Farrier's write path beside what others do, on the same device.
//!
//! The device is a file of this machine through a loop device with direct I/O, so that no page cache
//! stands between. Before each run as much of it as an image describes is written with `dd`: it is in the
//! same state for all, and the speed of that moment is known. A machine that others use is slow at
//! times; ratios are taken between neighbours, and the median counts.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use farrier_tests::image_server::{ImageServer, Reply};
use serde::Serialize;

use crate::command::{command, is_root, run, run_quietly, shown};
use crate::requirements::{self, Purpose};
use crate::workspace::{Workspace, cargo, write_json};

const MIB: usize = 1 << 20;

/// Writes images with Farrier and with common programs: seconds, bytes, memory and processor time.
#[derive(Debug, Args)]
pub struct WriteArguments {
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Size of the disk that the images describe.
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(64..))]
    size_mib: u64,
    /// How often each case is run; the median is reported.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// How an image gets to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Writer {
    Farrier,
    /// `curl | dd oflag=direct`, with an unpacker between where the image is packed.
    CurlDd,
    /// `curl` to memory, then `qemu-img convert` as the Python agent calls it.
    DownloadConvert,
}

/// Images and who writes them.
const CASES: &[(&str, &[Writer])] = &[
    ("dense.raw", &[Writer::Farrier, Writer::CurlDd, Writer::DownloadConvert]),
    ("sparse.raw", &[Writer::Farrier, Writer::CurlDd, Writer::DownloadConvert]),
    ("dense.qcow2", &[Writer::Farrier, Writer::DownloadConvert]),
    ("sparse.qcow2", &[Writer::Farrier, Writer::DownloadConvert]),
    ("dense.raw.zst", &[Writer::Farrier, Writer::CurlDd]),
    ("dense.raw.gz", &[Writer::Farrier, Writer::CurlDd]),
];

/// One run.
#[derive(Debug, Clone, Serialize)]
struct Figures {
    image: &'static str,
    writer: Writer,
    seconds: f64,
    /// Of the plain direct write just before.
    plain_seconds: f64,
    /// Transferred to the disk as data.
    bytes_written: u64,
    /// Sum of the largest resident memory of each process; files in memory are not in it.
    peak_rss_bytes: u64,
    cpu_seconds: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    size_mib: u64,
    runs: u32,
    figures: Vec<Figures>,
    /// Speed of Farrier in units of the plain write's.
    dense_to_plain: f64,
    /// Time of Farrier in units of the dense image's.
    sparse_to_dense: f64,
    /// Speed of Farrier in units of download and convert's.
    dense_qcow2_to_convert: f64,
    sparse_qcow2_to_convert: f64,
    /// Of Farrier, over all images.
    largest_rss_mib: f64,
}

/// Runs the command.
pub fn bench_write(arguments: &WriteArguments) -> Result<()> {
    requirements::ensure(&[Purpose::WriteBench], !arguments.no_install)?;
    ensure!(is_root(), "only root can write to block devices: run this as root");
    let workspace = Workspace::find()?;
    let driver = build_driver(&workspace)?;
    let bench = Bench::prepare(&workspace, arguments, driver)?;
    let mut figures = Vec::new();
    for (image, writers) in CASES {
        for writer in *writers {
            let mut runs = Vec::new();
            for _ in 0..arguments.runs {
                runs.push(bench.measure(image, *writer)?);
            }
            runs.sort_by(|one, other| one.slowness().total_cmp(&other.slowness()));
            let median = runs.swap_remove(runs.len() / 2);
            println!("{}", median.line());
            figures.push(median);
        }
    }
    let report = summary(arguments, figures);
    println!(
        "dense to plain {:.2}, sparse to dense {:.2}, qcow2 to download and convert {:.1} (dense) and {:.1} \
         (sparse), largest memory {:.0} MiB",
        report.dense_to_plain,
        report.sparse_to_dense,
        report.dense_qcow2_to_convert,
        report.sparse_qcow2_to_convert,
        report.largest_rss_mib
    );
    write_json(arguments.json.as_deref(), &report)
}

/// Ratios of neighbours: each run is related to the plain write before it.
fn summary(arguments: &WriteArguments, figures: Vec<Figures>) -> Report {
    let slowness = |image: &str, writer: Writer| {
        let found = figures.iter().find(|figures| figures.image == image && figures.writer == writer);
        found.map_or(f64::NAN, Figures::slowness)
    };
    let farrier = |image: &str| slowness(image, Writer::Farrier);
    let convert = |image: &str| slowness(image, Writer::DownloadConvert);
    let memory = figures.iter().filter(|figures| figures.writer == Writer::Farrier);
    Report {
        size_mib: arguments.size_mib,
        runs: arguments.runs,
        dense_to_plain: 1.0 / farrier("dense.raw"),
        sparse_to_dense: farrier("sparse.raw") / farrier("dense.raw"),
        dense_qcow2_to_convert: convert("dense.qcow2") / farrier("dense.qcow2"),
        sparse_qcow2_to_convert: convert("sparse.qcow2") / farrier("sparse.qcow2"),
        largest_rss_mib: memory.map(|figures| figures.peak_rss_bytes).max().unwrap_or(0) as f64 / MIB as f64,
        figures,
    }
}

impl Figures {
    /// Seconds, in units of the plain write before.
    fn slowness(&self) -> f64 {
        self.seconds / self.plain_seconds
    }

    fn line(&self) -> String {
        format!(
            "{:14} {:16} {:6.2} s ({:4.2} of plain), {:5} MiB written, {:5.1} MiB memory, {:5.2} s processor",
            self.image,
            format!("{:?}", self.writer),
            self.seconds,
            self.slowness(),
            self.bytes_written / MIB as u64,
            self.peak_rss_bytes as f64 / MIB as f64,
            self.cpu_seconds
        )
    }
}

fn build_driver(workspace: &Workspace) -> Result<PathBuf> {
    // Linking as a whole takes minutes and changes nothing that is measured here.
    let settings = ["--config", "profile.release.lto=false", "--config", "profile.release.codegen-units=16"];
    let mut build = cargo();
    build.args(["build", "--release", "-p", "farrier-imaging", "--example", "write_image"]).args(settings);
    run(build.current_dir(&workspace.root))?;
    Ok(workspace.target.join("release/examples/write_image"))
}

/// Images and a device, which goes before the folder that its file is in.
struct Bench {
    device: LoopDevice,
    folder: Folder,
    driver: PathBuf,
    size_mib: u64,
}

impl Bench {
    fn prepare(workspace: &Workspace, arguments: &WriteArguments, driver: PathBuf) -> Result<Self> {
        let folder = Folder(workspace.cache().join(format!("bench-write-{}", std::process::id())));
        fs::create_dir_all(&folder.0)?;
        println!("making images of {} MiB in {}", arguments.size_mib, folder.0.display());
        for (name, zeros) in [("dense", false), ("sparse", true)] {
            let raw = folder.0.join(format!("{name}.raw"));
            make_image(&raw, arguments.size_mib, zeros)?;
            let qcow2 = folder.0.join(format!("{name}.qcow2"));
            run(command("qemu-img").args(["convert", "-f", "raw", "-O", "qcow2"]).arg(&raw).arg(&qcow2))?;
        }
        run(command("zstd").args(["-q", "-3", "--keep"]).arg(folder.0.join("dense.raw")))?;
        run(command("gzip").args(["-1", "--keep"]).arg(folder.0.join("dense.raw")))?;
        let device = LoopDevice::create(&folder.0, arguments.size_mib + 64)?;
        Ok(Self { device, folder, driver, size_mib: arguments.size_mib })
    }

    fn measure(&self, image: &'static str, writer: Writer) -> Result<Figures> {
        let plain_seconds = self.plain()?;
        let server = ImageServer::start(vec![Reply::File(self.folder.0.join(image))])?;
        let mut timed = Timed { folder: &self.folder.0, files: Vec::new() };
        // Conductors have the digest from the image service.
        let digest = run_quietly(command("sha256sum").arg(self.folder.0.join(image)))?;
        let before = self.device.bytes_written()?;
        let started = Instant::now();
        let reported = match writer {
            Writer::Farrier => Some(self.farrier(&mut timed, &digest, &server)?),
            Writer::CurlDd => self.curl_dd(&mut timed, image, &server).map(|()| None)?,
            Writer::DownloadConvert => self.download_convert(&mut timed, image, &server).map(|()| None)?,
        };
        let seconds = started.elapsed().as_secs_f64();
        // The kernel counts zeros that are asked for as if they were transferred.
        let bytes_written = match reported {
            Some(bytes) => bytes,
            None => self.device.bytes_written()? - before,
        };
        let (cpu_seconds, peak_rss_bytes) = timed.read()?;
        Ok(Figures { image, writer, seconds, plain_seconds, bytes_written, peak_rss_bytes, cpu_seconds })
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
    fn farrier(&self, timed: &mut Timed<'_>, digest: &str, server: &ImageServer) -> Result<u64> {
        let sha256 = digest.split_whitespace().next().context("sha256sum printed nothing")?;
        let mut driver = timed.command(&self.driver);
        driver.arg(&self.device.0).args([&server.url(), sha256]);
        let report: serde_json::Value = serde_json::from_str(&run_quietly(&mut driver)?)?;
        report["bytes_written"].as_u64().context("the driver's report has no bytes_written")
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

    fn download_convert(&self, timed: &mut Timed<'_>, image: &str, server: &ImageServer) -> Result<()> {
        // The Python agent's temporary folder is in memory too.
        let copy = Path::new("/dev/shm").join(format!("farrier-bench-{}", std::process::id()));
        let format = if image.ends_with("qcow2") { "qcow2" } else { "raw" };
        let mut curl = timed.command(Path::new("curl"));
        curl.args(["-sSf", "-o"]).arg(&copy).arg(server.url());
        let mut convert = timed.command(Path::new("qemu-img"));
        convert.args(["convert", "-O", "host_device", "-t", "directsync", "-S", "0", "-f", format, "-W"]);
        convert.arg(&copy).arg(&self.device.0).env("MALLOC_ARENA_MAX", "3");
        let outcome = run(&mut curl).and_then(|()| run(&mut convert));
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

/// Data that packs to about half; with `zeros`, four of five MiB are zeros.
fn make_image(path: &Path, size_mib: u64, zeros: bool) -> Result<()> {
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

/// Runs programs of which each reads what the one before writes.
fn pipe(stages: Vec<Command>) -> Result<()> {
    let mut running: Vec<(String, Child)> = Vec::new();
    let count = stages.len();
    for (number, mut stage) in stages.into_iter().enumerate() {
        match running.last_mut().and_then(|(_, child)| child.stdout.take()) {
            Some(output) => stage.stdin(output),
            None => stage.stdin(Stdio::null()),
        };
        if number + 1 < count {
            stage.stdout(Stdio::piped());
        }
        let child = stage.spawn().with_context(|| format!("cannot start {}", shown(&stage)))?;
        running.push((shown(&stage), child));
    }
    for (name, child) in &mut running {
        let status = child.wait()?;
        if !status.success() {
            bail!("{name} ended with {status}");
        }
    }
    Ok(())
}

/// Processes whose memory and processor time are measured.
struct Timed<'a> {
    folder: &'a Path,
    files: Vec<PathBuf>,
}

impl Timed<'_> {
    fn command(&mut self, program: &Path) -> Command {
        let file = self.folder.join(format!("time-{}", self.files.len()));
        let mut timed = command("time");
        timed.args(["-f", "%U %S %M", "-o"]).arg(&file).arg(program);
        self.files.push(file);
        timed
    }

    /// Seconds of processor time, and bytes of memory.
    fn read(&self) -> Result<(f64, u64)> {
        let (mut seconds, mut kib) = (0.0, 0.0);
        for file in &self.files {
            let text = fs::read_to_string(file)?;
            let numbers: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
            let [user, system, memory] = numbers.as_slice() else { bail!("time printed {text:?}") };
            seconds += user + system;
            kib += memory;
        }
        Ok((seconds, (kib * 1024.0) as u64))
    }
}

/// The disk that is written to, detached in the end.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn create(folder: &Path, size_mib: u64) -> Result<Self> {
        let file = folder.join("disk");
        run(command("fallocate").args(["-l", &format!("{size_mib}MiB")]).arg(&file))?;
        let path = run_quietly(command("losetup").args(["--direct-io=on", "-f", "--show"]).arg(&file))?;
        Ok(Self(PathBuf::from(path.trim())))
    }

    /// As `dd` wants it.
    fn output(&self) -> String {
        format!("of={}", self.0.display())
    }

    /// What the kernel counted so far.
    fn bytes_written(&self) -> Result<u64> {
        let name = self.0.file_name().context("the device has no name")?;
        let file = Path::new("/sys/class/block").join(name).join("stat");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let sectors = text.split_whitespace().nth(6).and_then(|sectors| sectors.parse::<u64>().ok());
        Ok(sectors.with_context(|| format!("{} has no number of sectors", file.display()))? * 512)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if let Err(error) = run(command("losetup").arg("-d").arg(&self.0)) {
            eprintln!("{} stays: {error:#}", self.0.display());
        }
    }
}
