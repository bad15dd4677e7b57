//! Classes of disks: how fast they take data, what limits a write to them, and what Farrier has to reach there.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::{Figures, Writer};

/// A class of disks, by the speed at which they take data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Held at 200 MiB/s.
    HardDisk,
    /// Held at 500 MiB/s.
    SataSsd,
    /// As fast as this machine's.
    Fast,
}

/// What proves an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Digest {
    Sha256,
    /// Glance's choice where nobody makes another.
    Sha512,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    DenseToPlain,
    QcowToPlain,
    SparseToDense,
    DenseToConvert,
    SparseToConvert,
    QcowToConvert,
    SparseQcowToConvert,
}

/// How much is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

/// Something that is held to a budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub class: Class,
    pub digest: Digest,
    pub measure: Measure,
    pub wanted: Wanted,
    pub value: f64,
}

impl Class {
    pub const ALL: [Self; 3] = [Self::HardDisk, Self::SataSsd, Self::Fast];

    /// In the words of the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::HardDisk => "hard disk",
            Self::SataSsd => "SATA SSD",
            Self::Fast => "fast disk",
        }
    }

    /// The speed at which it is held.
    pub fn mib_per_second(self) -> Option<u64> {
        match self {
            Self::HardDisk => Some(200),
            Self::SataSsd => Some(500),
            Self::Fast => None,
        }
    }

    /// What no writer can be faster than.
    pub fn limit(self) -> &'static str {
        match self {
            Self::HardDisk => {
                "Held at 200 MiB/s. The disk sets the pace of everything that is transferred, so that no \
                 writer is faster than the plain write; what is not transferred costs no time."
            }
            Self::SataSsd => {
                "Held at 500 MiB/s. The disk sets the pace of data, and SHA-512 hardly another. Of an image with holes all bytes are received and hashed anyway, and there the digest sets it."
            }
            Self::Fast => {
                "A file of this machine, as an NVMe disk of some GiB/s. It takes data faster than one processor \
                 computes a digest of it, which cannot be divided: the digest sets the pace, and SHA-512, for \
                 which most processors have no instructions, a slower one, slower too than the OpenSSL that Python \
                 has. The plain write computes none."
            }
        }
    }

    /// What Farrier has to reach.
    fn budget(self, digest: Digest) -> Vec<(Measure, Wanted)> {
        use Measure::{
            DenseToConvert, DenseToPlain, QcowToConvert, QcowToPlain, SparseQcowToConvert, SparseToConvert,
            SparseToDense,
        };
        use Wanted::{AtLeast, AtMost};
        // SHA-512 is computed at about 600 MB/s: little more than a SATA SSD takes. Python's implementation, that of
        // OpenSSL, is 1.4 times as fast, which makes both sides more alike the less the disk has to do.
        let by_digest = |sha256, sha512| match digest {
            Digest::Sha256 => sha256,
            Digest::Sha512 => sha512,
        };
        let paced = |share| [(DenseToPlain, AtLeast(share)), (QcowToPlain, AtLeast(share))];
        let spared = (SparseQcowToConvert, AtLeast(2.0));
        match self {
            Self::HardDisk => {
                [&paced(0.9)[..], &[(SparseToDense, AtMost(by_digest(0.35, 0.5))), spared]].concat()
            }
            Self::SataSsd => {
                let faster = (SparseToConvert, AtLeast(by_digest(2.0, 1.5)));
                [&paced(by_digest(0.9, 0.75))[..], &[faster, spared]].concat()
            }
            Self::Fast => [DenseToConvert, SparseToConvert, QcowToConvert, SparseQcowToConvert]
                .map(|measure| (measure, AtLeast(by_digest(1.5, 1.1))))
                .to_vec(),
        }
    }
}

impl Digest {
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA-256",
            Self::Sha512 => "SHA-512",
        }
    }

    /// As conductors and Python spell it.
    pub fn algorithm(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }
}

impl Measure {
    /// In the words of the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::DenseToPlain => "dense raw, speed in units of a plain write's",
            Self::QcowToPlain => "dense qcow2, speed in units of a plain write's",
            Self::SparseToDense => "raw with 80 % zeros, time in units of the dense one's",
            Self::DenseToConvert => "dense raw, speed in units of download and convert's",
            Self::SparseToConvert => "raw with 80 % zeros, speed in units of download and convert's",
            Self::QcowToConvert => "dense qcow2, speed in units of download and convert's",
            Self::SparseQcowToConvert => "sparse qcow2, speed in units of download and convert's",
        }
    }

    /// From the figures of Farrier, and of download and convert.
    fn value<'a>(
        self,
        farrier: impl Fn(&str) -> Option<&'a Figures>,
        convert: impl Fn(&str) -> Option<&'a Figures>,
    ) -> Option<f64> {
        let to_plain = |image| Some(1.0 / farrier(image)?.slowness());
        let to_convert = |image| Some(convert(image)?.seconds / farrier(image)?.seconds);
        match self {
            Self::DenseToPlain => to_plain("dense.raw"),
            Self::QcowToPlain => to_plain("dense.qcow2"),
            Self::SparseToDense => Some(farrier("sparse.raw")?.seconds / farrier("dense.raw")?.seconds),
            Self::DenseToConvert => to_convert("dense.raw"),
            Self::SparseToConvert => to_convert("sparse.raw"),
            Self::QcowToConvert => to_convert("dense.qcow2"),
            Self::SparseQcowToConvert => to_convert("sparse.qcow2"),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(value) => write!(out, "≥ {value}"),
            Self::AtMost(value) => write!(out, "≤ {value}"),
        }
    }
}

impl Measured {
    /// A value that was not measured meets nothing.
    pub fn is_met(&self) -> bool {
        match self.wanted {
            Wanted::AtLeast(least) => self.value >= least,
            Wanted::AtMost(most) => self.value <= most,
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, digest, measure, wanted, value } = self;
        let (class, digest, measure) = (class.name(), digest.name(), measure.name());
        write!(out, "{class}, {digest}: {measure}: {value:.2}, wanted {wanted}")
    }
}

/// Everything that has a budget.
pub fn measured(classes: &[Class], figures: &[Figures]) -> Vec<Measured> {
    let mut all = Vec::new();
    for class in classes {
        for digest in Digest::ALL {
            let found = |image: &str, writer: Writer| {
                let mut ours = figures.iter().filter(|one| one.class == *class && one.digest == digest);
                ours.find(|one| one.image == image && one.writer == writer)
            };
            let farrier = |image: &str| found(image, Writer::Farrier);
            let convert = |image: &str| found(image, Writer::DownloadConvert);
            all.extend(class.budget(digest).into_iter().map(|(measure, wanted)| Measured {
                class: *class,
                digest,
                measure,
                wanted,
                value: measure.value(farrier, convert).unwrap_or(f64::NAN),
            }));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x31_every_class_has_a_budget_for_both_digests_and_says_its_limit() {
        for class in Class::ALL {
            assert!(class.limit().contains("the pace"), "{}", class.name());
            for digest in Digest::ALL {
                assert_eq!(class.budget(digest).len(), 4, "{} {}", class.name(), digest.name());
            }
        }
        assert!(measured(&Class::ALL, &[]).iter().all(|measured| !measured.is_met()), "nothing was measured");
    }
}
