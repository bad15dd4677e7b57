//! What overwriting and proving need of a disk.

use farrier_disk::{Error, Sectors, WritableDisk};

/// The sectors of a disk whose content may be destroyed.
pub trait Medium {
    /// Bytes.
    fn size(&self) -> u64;
    /// Bytes of a sector, the unit of offsets and lengths.
    fn sector_size(&self) -> u32;
    /// Fills an aligned buffer from `offset`, past every cache of the kernel.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error>;
    /// Writes an aligned buffer at `offset`.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn write(&self, data: &[u8], offset: u64) -> Result<(), Error>;
    /// Returns when everything is on stable storage.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn flush(&self) -> Result<(), Error>;
}

impl Medium for WritableDisk {
    fn size(&self) -> u64 {
        Sectors::size(self)
    }

    fn sector_size(&self) -> u32 {
        Sectors::sector_size(self)
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.read_exact_at(buffer, offset)
    }

    fn write(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        self.write_all_at(data, offset)
    }

    fn flush(&self) -> Result<(), Error> {
        Sectors::flush(self)
    }
}
