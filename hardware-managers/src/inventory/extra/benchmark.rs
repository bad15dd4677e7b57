//! Measuring processors, memory and disks for a moment each (`ipa-inspection-benchmarks`).

use super::{Row, Rows};
use farrier_linux::aligned::AlignedBuffer;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::thread;
use std::time::{Duration, Instant};

/// Time for one measurement.
const MOMENT: Duration = Duration::from_millis(500);
const MIB: usize = 1 << 20;
/// Blocks of memory that are copied: one that fits a cache, and one that does not.
const COPIES: [(&str, usize); 2] = [("1M", MIB), ("16M", 16 * MIB)];
/// Steps of a generator of numbers that are one loop.
const STEPS: u32 = 1_000;

/// Something to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Benchmark {
    /// Loops of integer arithmetic per second.
    Processor,
    /// Copying memory, MB per second.
    Memory,
    /// Reading disks past the page cache, kB per second. Nothing is written.
    Disk,
}

impl Benchmark {
    /// The benchmark of a name in `ipa-inspection-benchmarks`.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "cpu" => Some(Self::Processor),
            "mem" => Some(Self::Memory),
            "disk" => Some(Self::Disk),
            _ => None,
        }
    }

    /// Measures; a disk that cannot be read is left out (F42).
    pub(super) fn run(self, disks: &[&str]) -> Vec<Row> {
        let mut rows = Rows::default();
        match self {
            Self::Processor => {
                rows.add("cpu", "logical_0", "loops_per_sec", loops());
                rows.add("cpu", "logical", "loops_per_sec", on_all_processors(loops));
            }
            Self::Memory => {
                for (name, bytes) in COPIES {
                    rows.add("cpu", "logical_0", &format!("bandwidth_{name}"), copies(bytes));
                    let all = on_all_processors(move || copies(bytes));
                    rows.add("cpu", "logical", &format!("threaded_bandwidth_{name}"), all);
                }
            }
            Self::Disk => {
                for disk in disks {
                    match reads(disk) {
                        Ok(speed) => {
                            let name = disk.trim_start_matches("/dev/");
                            rows.add("disk", name, "standalone_read_1M_KBps", speed);
                        }
                        Err(error) => tracing::warn!(disk, %error, "the disk's speed cannot be measured"),
                    }
                }
            }
        }
        rows.0
    }
}

fn on_all_processors(measure: impl Fn() -> u64 + Sync) -> u64 {
    let count = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&measure)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
    })
}

/// How often per second `work` is done, tried for a [`MOMENT`].
fn rate(mut work: impl FnMut()) -> f64 {
    let started = Instant::now();
    let mut count = 0_u32;
    while count == 0 || started.elapsed() < MOMENT {
        work();
        count += 1;
    }
    f64::from(count) / started.elapsed().as_secs_f64()
}

fn loops() -> u64 {
    let mut number = 1_u64;
    rate(|| {
        for _ in 0..STEPS {
            number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17) ^ 1);
        }
    }) as u64
}

fn copies(bytes: usize) -> u64 {
    let (source, mut target) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    let per_second = rate(|| black_box(&mut target).copy_from_slice(black_box(&source)));
    (per_second * bytes as f64 / 1e6) as u64
}

/// From the beginning of the disk on.
fn reads(disk: &str) -> io::Result<u64> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(disk)?;
    read_speed(&file)
}

fn read_speed(file: &File) -> io::Result<u64> {
    let mut buffer = AlignedBuffer::zeroed(MIB);
    let started = Instant::now();
    let mut bytes = 0;
    while started.elapsed() < MOMENT {
        let read = file.read_at(&mut buffer, bytes)?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
    }
    if bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((bytes as f64 / started.elapsed().as_secs_f64() / 1e3) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn names_are_those_of_the_contract() {
        for (name, benchmark) in [
            ("cpu", Some(Benchmark::Processor)),
            ("mem", Some(Benchmark::Memory)),
            ("disk", Some(Benchmark::Disk)),
            ("tea", None),
        ] {
            assert_eq!(Benchmark::by_name(name), benchmark);
        }
    }

    #[test]
    fn f42_a_disk_that_cannot_be_read_is_left_out_and_the_others_are_measured() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; 3 * MIB]).unwrap();
        assert!(read_speed(file.as_file()).unwrap() > 0);
        assert!(read_speed(tempfile::tempfile().as_ref().unwrap()).is_err());
        assert_eq!(Benchmark::Disk.run(&["/dev/nosuch"]), []);
    }

    #[test]
    fn processors_and_memory_have_a_speed() {
        for (benchmark, count) in [(Benchmark::Processor, 2), (Benchmark::Memory, 4)] {
            let rows = benchmark.run(&[]);
            assert_eq!(rows.len(), count);
            assert!(rows.iter().all(|row| row.3.parse::<u64>().unwrap() > 0), "{rows:?}");
        }
    }
}
