//! The cells: which there are, and running them on all processors.

use crate::by_hand::md;
use crate::disks::{Disk, Placement, State};
use crate::occupants::{Maker, OCCUPANTS, Occupant};
use crate::stage::Stage;
use crate::steps::Step;
use crate::templates::Template;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many occupants share the cells of a step for which they take turns.
const TURNS: usize = 3;

/// One occupant in one place on one kind of disk, and one step.
#[derive(Clone, Copy)]
pub struct Cell {
    pub occupant: &'static Occupant,
    pub placement: Placement,
    pub state: State,
    pub sector: u32,
    pub step: Step,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { occupant, placement, state, sector, step } = self;
        write!(f, "{}.{}.{}.{sector}.{}", occupant.name, placement.name(), state.name(), step.name())
    }
}

impl Cell {
    /// Every cell there is.
    pub fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for (number, occupant) in OCCUPANTS.iter().enumerate() {
            for placement in Placement::ALL {
                for &state in State::of(placement) {
                    let steps = Step::ALL.into_iter().filter(|step| step.applies(occupant, placement, state));
                    let is_in_turn = state.is_plain() || (number + state as usize).is_multiple_of(TURNS);
                    for step in steps.filter(|step| is_in_turn || !step.has_turns()) {
                        let sectors = step.sectors(cells.len());
                        let cell = |sector: &u32| Self { occupant, placement, state, sector: *sector, step };
                        cells.extend(sectors.iter().map(cell));
                    }
                }
            }
        }
        cells
    }

    /// Some hundred of them: each occupant, and each step on each placement and state, at least once.
    pub fn quick() -> Vec<Self> {
        let mut seen = std::collections::BTreeSet::new();
        let mut cells = Self::all();
        // Occupants take turns, so that each step sees others.
        let count = OCCUPANTS.len();
        let place = |name: &str| OCCUPANTS.iter().position(|occupant| occupant.name == name).unwrap_or(count);
        cells.sort_by_key(|cell| {
            let turn = cell.step as usize * 17
                + cell.state as usize * 5
                + cell.placement as usize * 29
                + cell.sector as usize / 512;
            (place(cell.occupant.name) + turn * 7) % count
        });
        cells.retain(|cell| {
            let is_new_pair =
                seen.insert(format!("{}.{}.{}", cell.step.name(), cell.placement.name(), cell.state.name()));
            seen.insert(cell.occupant.name.to_owned()) || is_new_pair
        });
        cells
    }

    /// Whether its name has each of these words, which are divided by commas.
    pub fn is_named(&self, filter: &str) -> bool {
        let name = format!(".{self}.");
        filter.split(',').all(|word| name.contains(word))
    }
}

/// What became of a cell; nothing when all is well.
pub type Verdict = Result<(), String>;

/// What is made before the first cell runs.
struct Stock {
    templates: BTreeMap<(&'static str, u32), Template>,
    config_drive: Vec<u8>,
}

/// Who lives beside an occupant; an array of another name, where one is to be taken apart beside a kept one; and who
/// lived where no partition is any more.
const NEIGHBOUR: Occupant = Occupant { size: 16 << 20, name: "neighbour", ..*SWAP };
const OTHER_ARRAY: Occupant = Occupant {
    size: 16 << 20,
    name: "other-array",
    kind: "linux_raid_member",
    maker: Maker::ByHand(md::other),
    ..*SWAP
};
const FORMER: Occupant = Occupant { size: 8 << 20, name: "former", ..*SWAP };
const SWAP: &Occupant = &crate::occupants::SWAP;

/// Runs cells on all processors, and gives each with what became of it.
///
/// # Errors
///
/// An occupant cannot be made, or is not recognised.
pub fn run(cells: &[Cell]) -> Result<Vec<(Cell, Verdict)>> {
    let stock = Stock::for_cells(cells)?;
    Ok(on_all_processors(cells, |cell| {
        let outcome = catch_unwind(AssertUnwindSafe(|| stock.run(cell)));
        let verdict = match outcome {
            Ok(outcome) => outcome.map_err(|error| format!("{error:#}")),
            Err(_) => Err("it panicked".to_owned()),
        };
        if let Err(reason) = &verdict {
            println!("red: {cell}: {reason}");
        }
        (*cell, verdict)
    }))
}

impl Stock {
    fn for_cells(cells: &[Cell]) -> Result<Self> {
        let mut wanted: BTreeMap<_, _> =
            cells.iter().map(|cell| ((cell.occupant.name, cell.sector), cell.occupant)).collect();
        for sector in [512, 4096] {
            for occupant in [&NEIGHBOUR, &OTHER_ARRAY, &FORMER] {
                wanted.insert((occupant.name, sector), occupant);
            }
        }
        let wanted: Vec<_> = wanted.into_iter().collect();
        let made = on_all_processors(&wanted, |(key, occupant)| {
            Template::make(occupant, key.1).map(|template| (*key, template))
        });
        let failed: Vec<_> =
            made.iter().filter_map(|made| Some(format!("{:#}", made.as_ref().err()?))).collect();
        ensure!(failed.is_empty(), "{}", failed.join("\n"));
        Ok(Self { templates: made.into_iter().flatten().collect(), config_drive: config_drive()? })
    }

    fn template(&self, name: &'static str, sector: u32) -> Result<&Template> {
        self.templates.get(&(name, sector)).with_context(|| format!("there is no {name}"))
    }

    fn run(&self, cell: &Cell) -> Result<()> {
        let Cell { occupant, placement, state, sector, step } = *cell;
        let beside = if step == Step::DeleteKept { OTHER_ARRAY.name } else { NEIGHBOUR.name };
        let templates = [
            self.template(occupant.name, sector)?,
            self.template(beside, sector)?,
            self.template(FORMER.name, sector)?,
        ];
        let disk = Disk::new(placement, state, sector, templates);
        let file = tempfile::NamedTempFile::new()?;
        file.as_file().set_len(disk.size)?;
        disk.content.write(file.as_file())?;
        Stage::new(*cell, &disk, &self.config_drive, file.path())?.run()
    }
}

/// An ISO 9660 of settings, as conductors send it.
fn config_drive() -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let tree = folder.path().join("openstack/latest");
    std::fs::create_dir_all(&tree)?;
    std::fs::write(tree.join("meta_data.json"), "{\"uuid\": \"5a11\"}\n")?;
    let file = folder.path().join("drive.iso").display().to_string();
    let root = folder.path().join("openstack").display().to_string();
    crate::judge::tool(&["genisoimage", "-quiet", "-V", "config-2", "-R", "-o", &file, &root])?;
    Ok(std::fs::read(file)?)
}

/// Does `work` on all items and keeps their order.
fn on_all_processors<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work_on = || {
        let numbers = std::iter::from_fn(|| {
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < items.len())
        });
        numbers.map(|number| (number, work(&items[number]))).collect::<Vec<_>>()
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work_on)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}
