//! A multi-version B-tree with lazy split, in memory: which of its pages each transaction has to write.
//!
//! A transaction that splits nothing writes one page: its version is in the page that it changed (metadata embedding). The root keeps its
//! place, and the file's length says how many pages there are, so no page of metadata is written.

use std::collections::{BTreeMap, BTreeSet};

use joj_analysis::lab::matrix::LSMVBT_VERSIONS;

use super::page::{Item, LIVE, PAGE_BYTES, Slot, TreePage};

/// The number of the root; numbers are places in the file.
const ROOT: u32 = 0;
/// The largest key of a tree: what is right of all others. Below what SQLite's varint of nine bytes begins with.
const LAST_KEY: u64 = u64::MAX >> 8;

// Plans are refused by the same number.
const _: () = assert!(Tree::VERSIONS == LSMVBT_VERSIONS);

/// The tree. Its pages are those of the newest version, with what older ones see until a page is changed next.
#[derive(Debug)]
pub struct Tree {
    pages: Vec<TreePage>,
    version: u16,
    dirty: BTreeSet<u32>,
    /// Pages that nobody needs.
    free: Vec<u32>,
    /// Pages that a crash of this transaction would need.
    freed: Vec<u32>,
}

impl Tree {
    /// Most versions: each transaction has one, and the last number means that there is no end.
    pub const VERSIONS: u64 = LIVE as u64 - 1;

    /// Without rows.
    pub fn new() -> Tree {
        let root = TreePage { is_leaf: true, version: 0, slots: Vec::new() };
        Tree {
            pages: vec![root],
            version: 0,
            dirty: BTreeSet::from([ROOT]),
            free: Vec::new(),
            freed: Vec::new(),
        }
    }

    /// Begins a transaction.
    pub fn begin(&mut self) {
        self.version += 1;
    }

    /// Adds a row, or changes that of the same key.
    pub fn put(&mut self, key: u64, text: &[u8]) {
        let path = self.path(key);
        let leaf = path[path.len() - 1];
        self.end_row(leaf, key);
        let slot = Slot { key, start: self.version, end: LIVE, item: Item::Row(text.to_vec()) };
        self.page(leaf).add(slot);
        if self.page(leaf).bytes() <= PAGE_BYTES {
            self.change(leaf);
        } else {
            self.split_leaf(&path, key);
        }
    }

    /// Deletes a row; `false` where there is none.
    pub fn delete(&mut self, key: u64) -> bool {
        let path = self.path(key);
        let leaf = path[path.len() - 1];
        let was_there = self.end_row(leaf, key);
        if was_there {
            self.change(leaf);
        }
        was_there
    }

    /// Ends the transaction: the pages that it has to write, with their places in pages, in order.
    pub fn commit(&mut self) -> Vec<(u32, Vec<u8>)> {
        self.free.append(&mut self.freed);
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().map(|number| (number, self.page(number).encode())).collect()
    }

    fn page(&mut self, number: u32) -> &mut TreePage {
        &mut self.pages[number as usize]
    }

    fn change(&mut self, number: u32) {
        let version = self.version;
        self.page(number).version = version;
        self.dirty.insert(number);
    }

    /// The pages from the root to the leaf of a key.
    fn path(&self, key: u64) -> Vec<u32> {
        let mut path = vec![ROOT];
        let mut number = ROOT;
        while let Some(child) = self.pages[number as usize].slots.iter().find_map(|slot| match slot.item {
            Item::Child(child) if slot.is_live() && key <= slot.key => Some(child),
            _ => None,
        }) {
            path.push(child);
            number = child;
        }
        path
    }

    /// Makes room in a leaf, and ends the row of this key there, if there is one.
    fn end_row(&mut self, leaf: u32, key: u64) -> bool {
        let version = self.version;
        let page = self.page(leaf);
        page.collect(version);
        let found = page.slots.iter_mut().find(|slot| slot.key == key && slot.is_live());
        found.map(|slot| slot.end = version).is_some()
    }

    /// Divides a leaf that has one row too many, that of `key`.
    fn split_leaf(&mut self, path: &[u32], key: u64) {
        let leaf = path[path.len() - 1];
        let live: Vec<Slot> = self.page(leaf).slots.iter().filter(|slot| slot.is_live()).cloned().collect();
        let half = live.len() / 2;
        let is_left = live[..half].iter().any(|slot| slot.key == key);
        if leaf == ROOT || is_left {
            return self.divide(path, live);
        }
        // Lazy split: the page stays as it is on the medium. What moved out of it lies beyond its largest key in the parent.
        let version = self.version;
        let sibling = self.new_page(true, born(&live[half..], version));
        let page = self.page(leaf);
        page.slots.retain(|slot| slot.key != key || slot.start != version);
        let moved = page.slots.iter_mut().filter(|slot| slot.is_live() && slot.key >= live[half].key);
        moved.for_each(|slot| slot.end = version);
        self.replace(&path[..path.len() - 1], leaf, live[half - 1].key, [leaf, sibling]);
    }

    /// The split of a multi-version B-tree: two new pages hold what is live. The root keeps its place.
    fn divide(&mut self, path: &[u32], live: Vec<Slot>) {
        let number = path[path.len() - 1];
        let is_leaf = self.page(number).is_leaf;
        let (half, version) = (live.len() / 2, self.version);
        let left = self.new_page(is_leaf, born(&live[..half], version));
        let right = self.new_page(is_leaf, born(&live[half..], version));
        let middle = live[half - 1].key;
        if number == ROOT {
            let child = |key, number| Slot { key, start: version, end: LIVE, item: Item::Child(number) };
            let slots = vec![child(middle, left), child(LAST_KEY, right)];
            *self.page(ROOT) = TreePage { is_leaf: false, version, slots };
            self.change(ROOT);
            return;
        }
        self.dirty.remove(&number);
        self.freed.push(number);
        self.replace(&path[..path.len() - 1], number, middle, [left, right]);
    }

    /// Has the last page of `path` lead to two pages where it led to `old`: keys up to `middle` are in the first.
    fn replace(&mut self, path: &[u32], old: u32, middle: u64, [left, right]: [u32; 2]) {
        let (parent, version) = (path[path.len() - 1], self.version);
        let page = self.page(parent);
        page.collect(version);
        let mut last = LAST_KEY;
        for slot in page.slots.iter_mut().filter(|slot| slot.is_live() && slot.item == Item::Child(old)) {
            slot.end = version;
            last = slot.key;
        }
        for (key, number) in [(middle, left), (last, right)] {
            page.add(Slot { key, start: version, end: LIVE, item: Item::Child(number) });
        }
        if page.bytes() <= PAGE_BYTES {
            return self.change(parent);
        }
        let live = page.slots.iter().filter(|slot| slot.is_live()).cloned().collect();
        self.divide(path, live);
    }

    fn new_page(&mut self, is_leaf: bool, slots: Vec<Slot>) -> u32 {
        let page = TreePage { is_leaf, version: self.version, slots };
        let number = if let Some(number) = self.free.pop() {
            *self.page(number) = page;
            number
        } else {
            self.pages.push(page);
            u32::try_from(self.pages.len() - 1).unwrap_or(u32::MAX)
        };
        self.change(number);
        number
    }
}

/// Slots as a new page has them.
fn born(slots: &[Slot], version: u16) -> Vec<Slot> {
    slots.iter().map(|slot| Slot { start: version, ..slot.clone() }).collect()
}

/// The rows that the newest version sees in the bytes of a file.
/// # Errors
/// What is wrong with the file.
pub fn rows(file: &[u8]) -> Result<BTreeMap<u64, Vec<u8>>, String> {
    let mut rows = BTreeMap::new();
    // Number, and the keys that belong there: above the first, up to the second.
    let mut to_read = vec![(ROOT, None, LAST_KEY)];
    while let Some((number, above, last)) = to_read.pop() {
        let at = number as usize * PAGE_BYTES;
        let page = file.get(at..at + PAGE_BYTES).and_then(TreePage::decode);
        let page = page.ok_or_else(|| format!("page {number} is none"))?;
        let mut above = above;
        for slot in page.slots.into_iter().filter(Slot::is_live) {
            let belongs = above.is_none_or(|above| slot.key > above) && slot.key <= last;
            match slot.item {
                // A lazy split left it here.
                _ if !belongs => {}
                Item::Row(text) => {
                    if rows.insert(slot.key, text).is_some() {
                        return Err(format!("row {} is there twice", slot.key));
                    }
                }
                Item::Child(child) => {
                    to_read.push((child, above, slot.key));
                    above = Some(slot.key);
                }
            }
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::worker::workload::next_random;

    /// A file that transactions write to.
    fn write(file: &mut Vec<u8>, pages: &[(u32, Vec<u8>)]) {
        for (number, bytes) in pages {
            let at = *number as usize * PAGE_BYTES;
            file.resize(file.len().max(at + PAGE_BYTES), 0);
            file[at..at + PAGE_BYTES].copy_from_slice(bytes);
        }
    }

    #[test]
    fn what_is_on_the_medium_is_what_was_committed() {
        let (mut tree, mut file, mut expected) = (Tree::new(), Vec::new(), BTreeMap::new());
        write(&mut file, &tree.commit());
        let mut random = 1;
        for serial in 0..20_000_u64 {
            random = next_random(random);
            let key = random % 9_000 + 1;
            tree.begin();
            if serial % 3 == 0 {
                assert_eq!(tree.delete(key), expected.remove(&key).is_some());
            } else {
                let text = format!("{serial:0100}").into_bytes();
                tree.put(key, &text);
                expected.insert(key, text);
            }
            write(&mut file, &tree.commit());
            if serial % 1_000 < 3 {
                assert_eq!(rows(&file).unwrap(), expected, "transaction {serial}");
            }
        }
        assert!(rows(&file).unwrap() == expected && expected.len() > 4_000);
        file.truncate(3 * PAGE_BYTES);
        assert!(rows(&file).unwrap_err().contains("is none"));
    }

    #[test]
    fn a_row_behind_the_last_writes_one_page_and_a_lazy_split_two() {
        let mut tree = Tree::new();
        tree.commit();
        let mut pages = [0; 6];
        for key in 1..=1_000 {
            tree.begin();
            tree.put(key, &[b'a'; 100]);
            pages[tree.commit().len()] += 1;
        }
        // 37 rows divide the root, then every eighteen a page: one that the new rows are in, and the parent.
        assert_eq!(pages, [0, 946, 53, 1, 0, 0]);
    }

    #[test]
    fn a_row_between_others_that_does_not_fit_makes_two_new_pages() {
        let mut tree = Tree::new();
        for key in 1..=100 {
            tree.begin();
            tree.put(key * 10, &[b'a'; 100]);
        }
        tree.commit();
        // Each in front of the last: the one that does not fit is in the left half.
        let mut counts = Vec::new();
        for key in (1..30).rev().filter(|key| key % 10 != 0) {
            tree.begin();
            tree.put(key, &[b'a'; 100]);
            counts.push(tree.commit().len());
        }
        assert_eq!((counts.iter().max(), counts.iter().filter(|count| **count == 3).count()), (Some(&3), 1));
    }
}
