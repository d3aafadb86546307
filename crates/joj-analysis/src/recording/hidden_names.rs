//! Hashes in the place of names. The same component of a path has the same hash within one recording, and the hash does not say
//! the component.
//!
//! What says what a file is for stays: the extension, and SQLite's -wal, -shm and -journal.

use std::hash::BuildHasher;

use crate::recording::Recording;
use crate::trace::file_type::SQLITE_ENDINGS;
use crate::trace::texts::Texts;

/// A longer one is no extension but a part of the name.
const EXTENSION_BYTES_MAX: usize = 8;

/// Replaces every component of every path by its hash, with a key that is the hasher's.
pub fn hide(recording: &mut Recording, key: &impl BuildHasher) {
    let mut hidden = Texts::default();
    for call in &mut recording.calls {
        for path in [&mut call.path, &mut call.second_path] {
            *path = hidden.keep(&hidden_path(recording.texts.get(*path), key));
        }
    }
    recording.texts = hidden;
    // Its words may be names, too.
    recording.header.command.clear();
    if let Some(facts) = &mut recording.header.recording {
        facts.names_hidden = true;
        facts.mount_points.iter_mut().for_each(|place| *place = hidden_path(place, key));
    }
}

fn hidden_path(path: &str, key: &impl BuildHasher) -> String {
    let parts: Vec<String> = path.split('/').map(|part| hidden_component(part, key)).collect();
    parts.join("/")
}

fn hidden_component(name: &str, key: &impl BuildHasher) -> String {
    if matches!(name, "" | "." | "..") {
        return name.to_owned();
    }
    let suffix =
        SQLITE_ENDINGS.into_iter().find(|suffix| name.len() > suffix.len() && name.ends_with(suffix));
    let suffix = suffix.unwrap_or_default();
    let base = &name[..name.len() - suffix.len()];
    let (stem, extension) = match base.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && is_extension(extension) => {
            (stem, format!(".{extension}"))
        }
        _ => (base, String::new()),
    };
    format!("{:016x}{extension}{suffix}", key.hash_one(stem))
}

/// A short word of letters and digits that does not begin with one.
fn is_extension(text: &str) -> bool {
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word
        && text.len() <= EXTENSION_BYTES_MAX
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use super::*;
    use crate::recording::call::RecordedCall;
    use crate::recording::paths::mount_point_of;
    use crate::trace::header::RecordingFacts;

    #[test]
    fn a_component_has_one_hash_and_keeps_what_says_what_it_is_for() {
        let key = RandomState::new();
        let hide = |path: &str| hidden_path(path, &key);
        let (database, log) = (hide("/data/secret/app.db"), hide("/data/secret/app.db-wal"));
        assert_eq!(log, format!("{database}-wal"));
        assert!(database.ends_with(".db") && !database.contains("secret") && !database.contains("app"));
        assert_eq!(hide("/secret/../x").split('/').nth(1), database.split('/').nth(2), "the same component");
        assert!(hide("/a.b/../c").contains("/../"));
        let extension = |name: &str| hide(name).split_once('.').map(|(_, extension)| extension.to_owned());
        assert_eq!(extension("mail.alice-at-home"), None, "a part of the name");
        assert_eq!([extension(".bashrc"), extension("a.2024")], [None, None]);
        assert_ne!(hidden_path("/app", &RandomState::new()), hide("/app"), "the key is another file's");
    }
    #[test]
    fn a_path_lies_on_the_same_filesystem_under_its_hash() {
        let mut recording = Recording::default();
        let path = recording.texts.keep("/mnt/secret/file");
        recording.calls.push(RecordedCall { path, ..RecordedCall::default() });
        let mount_points = vec!["/".to_owned(), "/mnt/secret".to_owned()];
        recording.header.recording = Some(RecordingFacts { mount_points, ..RecordingFacts::default() });
        hide(&mut recording, &RandomState::new());
        let places = &recording.header.recording.as_ref().expect("facts").mount_points;
        assert!(places.iter().all(|place| !place.contains("secret")), "{places:?}");
        let path = recording.texts.get(recording.calls[0].path);
        assert_eq!((mount_point_of(path, places), &*places[0]), (Some(&*places[1]), "/"));
    }
}
