//! A disk in memory that can erase itself, or fails to in one of the ways disks do.

use crate::erase::command_set::{Patience, Reach, SecureErase, Stage, Survey};
use crate::erase::error::EraseError;
use crate::erase::medium::Medium;
use crate::erase::method::Method;
use farrier_disk::Error;
use std::cell::RefCell;

/// How the disk behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// It does what it says.
    Honest,
    /// It reports success and erases nothing.
    Liar,
    /// It reports success and erases its first half.
    HalfLiar,
    /// It refuses to erase itself.
    Refuses,
    /// It never finishes.
    Hangs,
    /// It does not keep what is written to its end.
    Forgets,
    /// It becomes unreadable by erasing itself.
    Unreadable,
    /// It lists methods that it does not have.
    Lacks,
}

/// The disk.
pub struct FakeDisk {
    pub nature: Nature,
    pub methods: Vec<Method>,
    pub is_indispensable: bool,
    /// Offsets whose sectors take no data.
    pub worn: Vec<u64>,
    pub(super) content: RefCell<Vec<u8>>,
    pub(super) is_dead: RefCell<bool>,
}

impl FakeDisk {
    /// A disk of `size` bytes of old data.
    pub fn new(nature: Nature, methods: &[Method], size: usize) -> Self {
        Self {
            nature,
            methods: methods.to_vec(),
            is_indispensable: false,
            worn: Vec::new(),
            content: RefCell::new(vec![0xaa; size]),
            is_dead: RefCell::default(),
        }
    }

    pub fn content(&self) -> Vec<u8> {
        self.content.borrow().clone()
    }
}

/// An input or output error.
pub fn broken(action: &str) -> Error {
    let source = std::io::Error::from_raw_os_error(5);
    Error::Device { device: "/dev/fake".into(), action: action.to_owned(), source }
}

impl Medium for FakeDisk {
    fn size(&self) -> u64 {
        self.content.borrow().len() as u64
    }

    fn sector_size(&self) -> u32 {
        512
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        if *self.is_dead.borrow() {
            return Err(broken("reading"));
        }
        buffer.copy_from_slice(&self.content.borrow()[offset as usize..offset as usize + buffer.len()]);
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        if self.worn.contains(&offset) {
            return Err(broken("writing"));
        }
        if self.nature != Nature::Forgets || offset + (data.len() as u64) < self.size() {
            self.content.borrow_mut()[offset as usize..offset as usize + data.len()].copy_from_slice(data);
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl SecureErase for FakeDisk {
    fn survey(&self) -> Result<Survey, EraseError> {
        Ok(Survey { methods: self.methods.clone(), capabilities: [("bits", 7)].into() })
    }

    fn wait_until_idle(&self, _: &Patience<'_>) -> Result<(), EraseError> {
        Ok(())
    }

    fn prepare(&self) -> Result<(), EraseError> {
        Ok(())
    }

    fn erase(&self, _: Method, patience: &Patience<'_>) -> Result<(), EraseError> {
        let erased = match self.nature {
            Nature::Refuses => {
                return Err(EraseError::Command { action: "erasing", reason: "refused".to_owned() });
            }
            Nature::Lacks => return Err(EraseError::unsupported("erasing", &"invalid field")),
            Nature::Hangs => return patience.wait("erasing", || Ok(Stage::Running(Some(9)))),
            Nature::Liar => 0,
            Nature::HalfLiar => self.content.borrow().len() / 2,
            Nature::Honest | Nature::Forgets | Nature::Unreadable => self.content.borrow().len(),
        };
        self.content.borrow_mut()[..erased].fill(0xff);
        *self.is_dead.borrow_mut() = self.nature == Nature::Unreadable;
        Ok(())
    }

    fn reach(&self) -> Reach {
        Reach::default()
    }

    fn is_indispensable(&self) -> bool {
        self.is_indispensable
    }
}
