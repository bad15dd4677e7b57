//! A text of an unidentified client: a long one is in a file without a name, and not in memory.

use farrier_conductor::untrusted::json as foreign_json;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use tokio::io::AsyncWriteExt;
use tokio::task::spawn_blocking;

/// Longest text that is kept in memory, in bytes: honest reports are shorter.
const SHORT: usize = 1 << 20;

/// How much of a file is read at a time, in bytes.
const PART: usize = 64 << 10;

/// The text.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    memory: Vec<u8>,
    file: Option<tokio::fs::File>,
}

/// It from its beginning.
#[derive(Debug)]
pub(crate) enum Spooled {
    Memory(Cursor<Vec<u8>>),
    File(io::BufReader<std::fs::File>),
}

impl Spool {
    /// Adds to its end.
    ///
    /// # Errors
    ///
    /// There is no room for a file in the folder of temporary files.
    pub(crate) async fn write(&mut self, part: &[u8]) -> io::Result<()> {
        if self.file.is_none() && self.memory.len() + part.len() > SHORT {
            let file = spawn_blocking(tempfile::tempfile).await.map_err(io::Error::other)??;
            let mut file = tokio::fs::File::from_std(file);
            file.write_all(&std::mem::take(&mut self.memory)).await?;
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(part).await,
            None => {
                self.memory.extend_from_slice(part);
                Ok(())
            }
        }
    }

    /// It as it is now.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    pub(crate) async fn end(self) -> io::Result<Spooled> {
        match self.file {
            None => Ok(Spooled::Memory(Cursor::new(self.memory))),
            Some(mut file) => {
                file.flush().await?;
                let mut file = io::BufReader::with_capacity(PART, file.into_std().await);
                file.rewind()?;
                Ok(Spooled::File(file))
            }
        }
    }
}

impl Spooled {
    /// Has it examined from its beginning, a long one while no other long one is, and gives it back.
    pub(crate) async fn examine<T: Send + 'static>(
        mut self,
        examine: impl FnOnce(&mut Self) -> T + Send + 'static,
    ) -> (Self, T) {
        match self {
            Self::Memory(_) => {
                let examined = examine(&mut self);
                (self, examined)
            }
            Self::File(_) => {
                foreign_json::apart(move || {
                    let examined = examine(&mut self);
                    (self, examined)
                })
                .await
            }
        }
    }

    /// All of it.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(crate) fn whole(&mut self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.rewind()?;
        self.read_to_end(&mut text)?;
        Ok(text)
    }
}

impl Read for Spooled {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Memory(text) => text.read(bytes),
            Self::File(text) => text.read(bytes),
        }
    }
}

impl Seek for Spooled {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Memory(text) => text.seek(place),
            Self::File(text) => text.seek(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_text_is_the_same_in_memory_and_in_a_file() {
        for parts in [0, 1, 3, 1100] {
            let mut spool = Spool::default();
            for part in 0..parts {
                spool.write(&[part as u8; 1000]).await.unwrap();
            }
            let mut spooled = spool.end().await.unwrap();
            assert_eq!(matches!(spooled, Spooled::File(_)), parts > 1048);
            for _ in 0..2 {
                let text = spooled.whole().unwrap();
                let expected: Vec<u8> = (0..parts).flat_map(|part| [part as u8; 1000]).collect();
                assert_eq!(text, expected);
            }
        }
    }
}
