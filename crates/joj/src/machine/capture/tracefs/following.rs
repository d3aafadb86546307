//! How the names of files follow what the watch saw, and when they are not known.

use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use joj_analysis::trace::event::{DeviceNumber, Event, EventKind, FileKey};
use joj_analysis::trace::ftrace::record::NameChange;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::machine::capture::tracefs::files::Files;
use crate::machine::capture::tracefs::filesystems::sources::Source;
use crate::machine::capture::tracefs::known::{Known, named};
use crate::machine::capture::tracefs::name_changes::doubts::{Doubtful, Doubts, Moved};
use crate::machine::capture::tracefs::name_changes::file_names::{LOOKS_MAX, Seen};
use crate::machine::capture::tracefs::name_changes::links::Links;
use crate::machine::files::file_handle::{self, Handle};
use crate::machine::files::file_watch::Change;

impl Files {
    /// Takes what the watch saw. Changes of names wait, as their times are yet to be found: [`Files::settle_names`], when the records up to
    /// now were read. A record of a creation is there before the watch sees it, and waits longer.
    pub fn look(&mut self) {
        let (seen, lost, looked_ns) = self.watcher.look();
        self.looked_ns = looked_ns;
        self.has_lost_names |= lost;
        for (look, seen) in seen {
            let Change { created, deleted, .. } = seen.change;
            let as_change = |created, deleted| {
                let change = Change { created, deleted, ..seen.change.clone() };
                Seen { change, ..seen.clone() }
            };
            let is_further_name = created && !self.saw_creation(look.since_ns..look.ended_ns, &seen);
            // It came and went, or went and came: the watch does not say which was first.
            let is_doubtful = is_further_name && deleted && self.may_have_name(&seen);
            if seen.unsure {
                self.doubtful.push((look.since_ns, seen.clone()));
            }
            let mut push = |kind, seen| {
                self.changes.push(look, kind, seen, kind == NameChange::Removed && created);
            };
            if is_further_name {
                push(NameChange::Added, as_change(true, false));
            }
            if deleted {
                push(NameChange::Removed, as_change(false, true));
            } else if !created {
                push(NameChange::Renamed, as_change(false, false));
            }
            if is_doubtful {
                self.doubtful.push((look.since_ns, seen));
            }
        }
    }

    /// To be called after a look, when all calls were noted that have returned ([`Files::note_call`]). Returns the events of files whose
    /// names are not known for a while. `handed_ns`: the records until then were used.
    pub fn settle_names(&mut self, handed_ns: u64) -> Vec<(Event, String)> {
        for (kind, from_ns, seen) in self.changes.unclear(self.looked_ns) {
            // The only name of a file goes once, and is not asked for afterwards.
            let had = self.had((seen.device, seen.change.inode), seen.change.generation);
            let has_several = had.is_some_and(|had| had.links.left() > 0) || self.changes.is_adding(&seen);
            if kind == NameChange::Renamed || has_several {
                self.doubtful.push((from_ns, seen));
            }
        }
        if self.doubtful.is_empty() { Vec::new() } else { self.doubt(handed_ns) }
    }

    /// A call that changes names has returned at this time, and its record is not used yet.
    pub fn note_call(&mut self, thread: u32, kind: NameChange, time_ns: u64) {
        self.changes.note_call(thread, kind, time_ns);
    }

    /// Asks doubtful files what they are called now. Until then they have no name.
    fn doubt(&mut self, handed_ns: u64) -> Vec<(Event, String)> {
        let mut files: Vec<(FileKey, Doubtful, Option<Metadata>, Option<String>)> = Vec::new();
        let mut is_settled = false;
        for _ in 0..LOOKS_MAX {
            let mut doubtful = std::mem::take(&mut self.doubtful);
            let mut devices: Vec<DeviceNumber> = doubtful.iter().map(|(_, seen)| seen.device).collect();
            devices.extend(files.iter().map(|(file, ..)| file.device));
            devices.sort_unstable();
            devices.dedup();
            // What a file is called now holds the names of directories of now. Where one of them is yet to be used, or is in doubt
            // itself, nothing that waits fits to it.
            devices.retain(|device| self.changes.has_move(*device));
            doubtful.extend(devices.into_iter().flat_map(|device| self.changes.of_filesystem(device)));
            for (from_ns, seen) in doubtful {
                let file = seen.file();
                match files.iter_mut().find(|(known, ..)| *known == file) {
                    Some((_, (first_ns, _), ..)) => *first_ns = from_ns.min(*first_ns),
                    None => files.push((file, (from_ns, seen), None, None)),
                }
            }
            for (_, (_, seen), facts, name) in &mut files {
                (*facts, *name) = self.ask(seen.device, &seen.change.handle);
            }
            let before = self.changes.count();
            self.look();
            is_settled = self.changes.count() == before;
            if is_settled {
                break;
            }
        }
        // Where directories are among them, all are in doubt since the first is.
        let mut moving: FxHashMap<DeviceNumber, u64> = FxHashMap::default();
        for (file, (from_ns, _), ..) in &files {
            if self.changes.has_move(file.device) {
                let first_ns = moving.entry(file.device).or_insert(*from_ns);
                *first_ns = (*from_ns).min(*first_ns);
            }
        }
        let (mut told, mut moved) = (Vec::new(), Vec::new());
        let keys: FxHashSet<FileKey> = files.iter().map(|(file, ..)| *file).collect();
        for (file, (from_ns, seen), facts, name) in files {
            let FileKey { inode, generation, .. } = file;
            let is_shown_by = self.had((file.device, inode), generation).and_then(|had| had.name.clone());
            let moving_ns = moving.get(&file.device).copied();
            let keeps_name =
                moving_ns.is_none() && is_shown_by.is_some_and(|name| !self.changes.has_name(file, &name));
            let (first_ns, names) = self.changes.doubt(file);
            let from_ns = moving_ns.unwrap_or(from_ns).min(first_ns).max(handed_ns);
            if let Some(facts) = facts.as_ref().filter(|facts| keeps_name && is_settled && facts.nlink() > 0)
                && let Some(had) = self.had((file.device, inode), generation)
            {
                // Others come and go.
                had.links = Links::unlisted(facts.nlink() - 1);
                continue;
            }
            let name = name.filter(|_| is_settled);
            if seen.change.directory && !names.is_empty() {
                moved.push(Moved { directory: file, from_ns, names, now: name.clone() });
            }
            self.call(file, &seen, facts, name, from_ns, &mut told);
        }
        if !moved.is_empty() {
            self.doubt_below(moved, &keys, &mut told);
        }
        told
    }

    /// True where a file that got a name may have had it before.
    fn may_have_name(&mut self, seen: &Seen) -> bool {
        if self.changes.has_move(seen.device) {
            return true;
        }
        self.changes.has_now(seen.file(), &seen.path).unwrap_or_else(|| {
            let path = named(seen.path.clone(), seen.change.directory);
            let had = self.had((seen.device, seen.change.inode), seen.change.generation);
            had.is_none_or(|had| had.links.may_have(had.name.as_deref(), &path))
        })
    }

    /// What a file is called now, and what else is known of it; nothing if it is gone.
    fn ask(&self, device: DeviceNumber, (kind, bytes): &Handle) -> (Option<Metadata>, Option<String>) {
        let found = self.source(device).and_then(|source| {
            let found = file_handle::open(&source.mounted.directory()?, *kind, bytes).ok()?;
            let facts = found.metadata().ok()?;
            let name = source.name_of(&found, &facts).filter(|_| facts.nlink() > 0);
            Some((facts, name))
        });
        found.map_or((None, None), |(facts, name)| (Some(facts), name))
    }

    /// Asks for the name of a file whose name was not known for a while, once nothing changes it any more.
    pub(super) fn ask_withheld(&mut self, key: (DeviceNumber, u64)) {
        let Some(known) = self.known.get(&key).filter(|known| known.withheld && known.name.is_none()) else {
            return;
        };
        let (file, handle) =
            (FileKey { device: key.0, inode: key.1, generation: known.generation }, known.handle.clone());
        let is_moving = |files: &Self| {
            files.doubts.has_any_below(key.0) || files.changes.has_move(key.0) || files.changes.has(file)
        };
        if is_moving(self) {
            return;
        }
        let (facts, name) = handle.map_or((None, None), |handle| self.ask(key.0, &handle));
        self.look();
        if is_moving(self) {
            return;
        }
        let Some(known) = self.known.get_mut(&key) else { return };
        // Asked in vain, it is asked no more.
        known.withheld = false;
        if let (Some(facts), Some(name)) = (facts, name) {
            let others = if known.directory { 0 } else { facts.nlink().saturating_sub(1) };
            (known.links, known.told) = (Links::unlisted(others), false);
            known.name = Some(named(name, known.directory));
        }
    }

    /// A doubtful file has no name for us from `from_ns` on, and this one since the last look.
    fn call(
        &mut self,
        file: FileKey,
        seen: &Seen,
        facts: Option<Metadata>,
        name: Option<String>,
        from_ns: u64,
        told: &mut Vec<(Event, String)>,
    ) {
        let until_ns = self.looked_ns;
        let key = (file.device, file.inode);
        if self.had(key, file.generation).is_none() && !self.known.contains_key(&key) {
            self.known.insert(key, Known::seen(&seen.change, &seen.path));
        }
        let names = facts.as_ref().map_or(0, Metadata::nlink);
        let name = name.map(|name| named(name, seen.change.directory));
        if let Some(had) = self.had(key, file.generation) {
            let others = if had.directory { 0 } else { names.saturating_sub(1) };
            (had.name, had.links) = (name.clone(), Links::unlisted(others));
            (had.told, had.nameless) = (true, names == 0);
        }
        unname(&mut self.doubts, file, from_ns, until_ns, told);
        let event = |kind| Event { kind, file, time_ns: until_ns, ..Event::default() };
        if names == 0 {
            told.push((event(EventKind::Unlinked), String::new()));
        } else if let Some(name) = name {
            told.push((event(EventKind::Named), name));
        }
    }

    /// Files below doubtful directories, but for these, of which that is told already.
    fn doubt_below(&mut self, moved: Vec<Moved>, but: &FxHashSet<FileKey>, told: &mut Vec<(Event, String)>) {
        let until_ns = self.looked_ns;
        for ((device, inode), known) in &mut self.known {
            let file = FileKey { device: *device, inode: *inode, generation: known.generation };
            let before = known.name.as_deref().filter(|_| !known.nameless && !but.contains(&file));
            let Some(before) = before else { continue };
            let above: Vec<&Moved> = moved.iter().filter(|moved| moved.may_hold(*device, before)).collect();
            let Some(from_ns) = above.iter().map(|moved| moved.from_ns).min() else { continue };
            // With two of them, or with a name of one's that is not its first, it may be below either.
            let name = if let [one] = above[..] { one.name_now(before) } else { None };
            // Changes of its name were handed on even where it was not yet seen otherwise.
            unname(&mut self.doubts, file, from_ns, until_ns, told);
            told.extend(name.iter().map(|name| (named_event(file, until_ns), name.clone())));
            (known.told, known.withheld) = (true, name.is_none());
            known.name = name;
            known.links.forget();
        }
        // What was made there while they moved has one of these names, and we do not know which.
        for ((device, inode), made) in self.creations.all() {
            let file = FileKey { device, inode, generation: made.generation };
            let Some(name) = made.name.as_deref().filter(|_| !but.contains(&file)) else { continue };
            let above = moved.iter().filter(|moved| moved.may_hold(device, name));
            let Some(from_ns) = above.map(|moved| moved.from_ns).min() else { continue };
            (made.name, made.withheld) = (None, true);
            told.push((named_event(file, from_ns), String::new()));
        }
        for Moved { directory, mut names, now, .. } in moved {
            names.extend(now);
            self.doubts.note_below(directory.device, names, until_ns);
        }
    }

    /// A thread's call that returned at this time has changed names: the events for it, where no record reports it, and their names.
    pub fn names_changed(&mut self, thread: u32, kind: NameChange, time_ns: u64) -> Vec<(Event, String)> {
        let of_calls = self.changes.of_call(thread, kind, time_ns);
        of_calls.into_iter().flat_map(|seen| self.change(seen)).collect()
    }

    /// The same for changes seen until `until_ns` that no record reported, with their times.
    pub fn overdue(&mut self, until_ns: u64) -> Vec<(Event, String)> {
        let mut told = Vec::new();
        self.doubts.forget(until_ns);
        for (time_ns, seen) in self.changes.overdue(until_ns) {
            for (event, name) in self.change(seen) {
                // Its name from before was handed on meanwhile, with a later time.
                let told_ns =
                    self.known.get(&(event.file.device, event.file.inode)).map(|known| known.told_ns);
                let again_ns = told_ns.filter(|told_ns| event.kind == EventKind::Named && *told_ns > time_ns);
                told.push((Event { time_ns, ..event }, name.clone()));
                told.extend(again_ns.map(|time_ns| (Event { time_ns, ..event }, name)));
            }
        }
        told
    }

    /// What one call changed.
    fn change(&mut self, seen: Vec<Seen>) -> Vec<(Event, String)> {
        let mut told = self.follow(&seen);
        told.extend(seen.into_iter().filter_map(|seen| self.changed(seen)));
        told
    }

    /// Files below directories that have other names now are called otherwise, too.
    fn follow(&mut self, seen: &[Seen]) -> Vec<(Event, String)> {
        let moved: Vec<&Seen> =
            seen.iter().filter(|seen| seen.change.directory && seen.before.is_some()).collect();
        let mut told = Vec::new();
        if moved.is_empty() {
            return told;
        }
        for ((device, inode), known) in &mut self.known {
            let of_it = moved.iter().filter(|seen| seen.device == *device);
            let now = |name: &str| of_it.clone().find_map(|seen| seen.name_after(*inode, name));
            known.links.follow(&now);
            let Some(name) = known.name.as_deref().and_then(now) else { continue };
            known.name = Some(name.clone());
            if !known.nameless {
                let file = FileKey { device: *device, inode: *inode, generation: known.generation };
                told.push((Event { kind: EventKind::Named, file, ..Event::default() }, name));
            }
        }
        told
    }

    /// A file got a name. False where it is a further one: a link, and no new file.
    fn saw_creation(&mut self, between_ns: Range<u64>, seen: &Seen) -> bool {
        let Seen { device, change, path, unsure, .. } = seen;
        let key = (*device, change.inode);
        self.subvolumes.note(seen.file());
        if self.had(key, change.generation).is_some_and(|had| !had.links.is_born()) {
            return false;
        }
        let mut known = Known::seen(change, path);
        if *unsure {
            (known.name, known.withheld) = (None, true);
        }
        if self.source(*device).is_some_and(|source| source.tells_creations) {
            self.creations.push(key, between_ns, known);
        } else {
            self.known.insert(key, known);
        }
        true
    }

    /// A file has another name, a name more or a name less: the event for it, where no record reports it, and the name.
    fn changed(&mut self, seen: Seen) -> Option<(Event, String)> {
        let file = seen.file();
        let Seen { device, change, path, before, .. } = seen;
        let path = named(path, change.directory);
        let key = (device, change.inode);
        let source = self.source(device);
        let tells_removals = source.is_some_and(Source::tells_removals);
        let event = |kind| Event { kind, file, ..Event::default() };
        let Some(Known { links, name, directory, nameless, .. }) = self.had(key, change.generation) else {
            if change.deleted {
                // Its number may be another's by now.
                return (!tells_removals).then(|| (event(EventKind::Unlinked), path));
            }
            self.known.insert(key, Known::seen(&change, &path));
            return Some((event(EventKind::Named), path));
        };
        let shown = name.clone();
        if change.created {
            links.add(name, path);
        } else if !change.deleted {
            let before = before.map(|before| named(before, *directory));
            links.rename(name, before.as_deref(), path);
        } else if !links.remove(name, &path) {
            *nameless = true;
            return (!tells_removals).then(|| (event(EventKind::Unlinked), path));
        }
        // None where those that are left are from before the capture, and nobody listed them.
        (*name != shown).then(|| (event(EventKind::Named), name.clone().unwrap_or_default()))
    }
}

/// A file is called something else from this time on.
fn named_event(file: FileKey, time_ns: u64) -> Event {
    Event { kind: EventKind::Named, file, time_ns, ..Event::default() }
}

/// A file has no name from `from_ns` on, until it is known again at `until_ns` what it is called.
fn unname(doubts: &mut Doubts, file: FileKey, from_ns: u64, until_ns: u64, told: &mut Vec<(Event, String)>) {
    let again_ns = doubts.note(file, from_ns, until_ns);
    let times_ns = [Some(from_ns), again_ns];
    told.extend(times_ns.into_iter().flatten().map(|time_ns| (named_event(file, time_ns), String::new())));
}
