//! What overwriting and proving need of a disk.

use farrier_disk::{Error, Sectors, WritableDisk};
use farrier_linux::block::zones::Zone;

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
    /// The zones of a disk that must be written in order; none for any other.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn zones(&self) -> Result<Vec<Zone>, Error> {
        Ok(Vec::new())
    }
    /// Has zones in a range begin at their starts again.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn reset_zones(&self, offset: u64, length: u64) -> Result<(), Error> {
        let _ = (offset, length);
        Ok(())
    }
    /// Has zones in a range be full: a disk allows few that are neither empty nor full.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn finish_zones(&self, offset: u64, length: u64) -> Result<(), Error> {
        let _ = (offset, length);
        Ok(())
    }
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
    fn zones(&self) -> Result<Vec<Zone>, Error> {
        Self::zones(self)
    }

    fn reset_zones(&self, offset: u64, length: u64) -> Result<(), Error> {
        Self::reset_zones(self, offset, length)
    }

    fn finish_zones(&self, offset: u64, length: u64) -> Result<(), Error> {
        Self::finish_zones(self, offset, length)
    }
}
