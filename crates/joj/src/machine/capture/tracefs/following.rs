//! How the names of files follow what the watch saw, and when they are not known.

use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use joj_analysis::trace::event::{Event, EventKind, FileKey};
use joj_analysis::trace::ftrace::record::NameChange;

use crate::machine::capture::tracefs::files::{Files, Known, named};
use crate::machine::capture::tracefs::name_changes::doubts::{Doubtful, rest_below};
use crate::machine::capture::tracefs::name_changes::file_names::{LOOKS_MAX, Seen};
use crate::machine::capture::tracefs::name_changes::links::Links;
use crate::machine::capture::tracefs::sources::Source;
use crate::machine::files::file_handle;
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
            let mut push = |kind, seen| self.changes.push(look, kind, seen);
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
            for (from_ns, seen) in std::mem::take(&mut self.doubtful) {
                let Change { inode, generation, .. } = seen.change;
                let file = FileKey { device: seen.device, inode, generation };
                match files.iter_mut().find(|(known, ..)| *known == file) {
                    Some((_, (first_ns, _), ..)) => *first_ns = from_ns.min(*first_ns),
                    None => files.push((file, (from_ns, seen), None, None)),
                }
            }
            for (_, (_, seen), facts, name) in &mut files {
                (*facts, *name) = self.ask(seen);
            }
            let before = self.changes.count();
            self.look();
            is_settled = self.changes.count() == before;
            if is_settled {
                break;
            }
        }
        let mut told = Vec::new();
        for (file, (from_ns, seen), facts, name) in files {
            let FileKey { inode, generation, .. } = file;
            let is_shown_by = self.had((file.device, inode), generation).and_then(|had| had.name.clone());
            let keeps_name = is_shown_by.is_some_and(|name| !self.changes.has_name(file, &name));
            let (first_ns, names) = self.changes.doubt(file);
            let from_ns = first_ns.min(from_ns).max(handed_ns);
            if let Some(facts) = facts.as_ref().filter(|facts| keeps_name && is_settled && facts.nlink() > 0)
                && let Some(had) = self.had((file.device, inode), generation)
            {
                // Others come and go.
                had.links = Links::unlisted(facts.nlink() - 1);
                continue;
            }
            let name = name.filter(|_| is_settled);
            if seen.change.directory {
                self.doubt_below(file, from_ns, names, name.as_deref(), &mut told);
            }
            self.call(file, &seen, facts, name, from_ns, &mut told);
        }
        told
    }

    /// True where a file that got a name may have had it before.
    fn may_have_name(&mut self, seen: &Seen) -> bool {
        let Change { inode, generation, directory, .. } = seen.change;
        let file = FileKey { device: seen.device, inode, generation };
        self.changes.has_now(file, &seen.path).unwrap_or_else(|| {
            let path = named(seen.path.clone(), directory);
            let had = self.had((seen.device, inode), generation);
            had.is_none_or(|had| had.links.may_have(had.name.as_deref(), &path))
        })
    }

    /// What a doubtful file is called now, and what else is known of it; nothing if it is gone.
    fn ask(&self, seen: &Seen) -> (Option<Metadata>, Option<String>) {
        let (kind, bytes) = &seen.change.handle;
        let found = self.source(seen.device).and_then(|source| {
            let found = file_handle::open(&source.mounted.directory()?, *kind, bytes).ok()?;
            let facts = found.metadata().ok()?;
            let name = source.name_of(&found, &facts).filter(|_| facts.nlink() > 0);
            Some((facts, name))
        });
        found.map_or((None, None), |(facts, name)| (Some(facts), name))
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
        self.doubts.note(file, until_ns);
        let event = |kind, time_ns| Event { kind, file, time_ns, ..Event::default() };
        told.push((event(EventKind::Named, from_ns), String::new()));
        if names == 0 {
            told.push((event(EventKind::Unlinked, until_ns), String::new()));
        } else if let Some(name) = name {
            told.push((event(EventKind::Named, until_ns), name));
        }
    }

    /// Files below a doubtful directory, which was called by the first of these names before. The others may be names of it, too.
    fn doubt_below(
        &mut self,
        directory: FileKey,
        from_ns: u64,
        mut names: Vec<String>,
        now: Option<&str>,
        told: &mut Vec<(Event, String)>,
    ) {
        let (device, until_ns) = (directory.device, self.looked_ns);
        let before = names.first().cloned().unwrap_or_default();
        for ((of, inode), known) in self.known.iter_mut().filter(|((of, _), _)| *of == device) {
            let Some(rest) = known.name.as_deref().and_then(|name| rest_below(name, &before)) else {
                continue;
            };
            let name = now.map(|now| format!("{now}/{rest}"));
            let file = FileKey { device: *of, inode: *inode, generation: known.generation };
            let event = |time_ns| Event { kind: EventKind::Named, file, time_ns, ..Event::default() };
            if known.told && !known.nameless {
                told.push((event(from_ns), String::new()));
                told.extend(name.iter().map(|name| (event(until_ns), name.clone())));
            }
            self.doubts.note(file, until_ns);
            known.name = name;
        }
        names.extend(now.map(str::to_owned));
        // What was made there meanwhile has one of these names, and we do not know which.
        let may_be_below = |name: &String| names.iter().any(|above| rest_below(name, above).is_some());
        for made in self.creations.all() {
            made.name = made.name.take().filter(|name| !may_be_below(name));
        }
        self.doubts.note_below(device, names, until_ns);
    }

    /// True once the kernel threw away what the watch would have seen.
    pub fn has_lost_names(&self) -> bool {
        self.has_lost_names
    }

    /// A thread's call that returned at this time has changed names: the events for it, where no record reports it, and their names.
    pub fn names_changed(&mut self, thread: u32, kind: NameChange, time_ns: u64) -> Vec<(Event, String)> {
        let seen = self.changes.of_call(thread, kind, time_ns);
        self.change(seen)
    }

    /// The same for changes seen until `until_ns` that no record reported, with their times.
    pub fn overdue(&mut self, until_ns: u64) -> Vec<(Event, String)> {
        let mut told = Vec::new();
        self.doubts.forget(until_ns);
        for (time_ns, seen) in self.changes.overdue(until_ns) {
            let changed = self.change(vec![seen]).into_iter();
            told.extend(changed.map(|(event, name)| (Event { time_ns, ..event }, name)));
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
            if known.told && !known.nameless {
                let file = FileKey { device: *device, inode: *inode, generation: known.generation };
                told.push((Event { kind: EventKind::Named, file, ..Event::default() }, name));
            }
        }
        told
    }

    /// A file got a name. False where it is a further one: a link, and no new file.
    fn saw_creation(&mut self, between_ns: Range<u64>, seen: &Seen) -> bool {
        let Seen { device, change, path, .. } = seen;
        let key = (*device, change.inode);
        if self.had(key, change.generation).is_some_and(|had| !had.links.is_born()) {
            return false;
        }
        let known = Known::seen(change, path);
        if self.source(*device).is_some_and(|source| source.tells_creations) {
            self.creations.push(key, between_ns, known);
        } else {
            self.known.insert(key, known);
        }
        true
    }

    /// A file has another name, a name more or a name less: the event for it, where no record reports it, and the name.
    fn changed(&mut self, seen: Seen) -> Option<(Event, String)> {
        let Seen { device, change, path, before } = seen;
        let path = named(path, change.directory);
        let key = (device, change.inode);
        let file = FileKey { device, inode: change.inode, generation: change.generation };
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
