//! Paths as the kernel would take them: absolute, without `.` and `..`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;

use crate::trace::texts::name_of;

/// `path` as seen from `directory`. Links are not followed: the recording does not know them all.
pub fn absolute(directory: &str, path: &str) -> String {
    let begin = if path.starts_with('/') { "" } else { directory };
    let mut parts: Vec<&str> = Vec::new();
    for part in begin.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// What a map has for names below `path`, in order; not for `path` itself.
pub fn below<'map, T>(
    names: &'map BTreeMap<String, T>,
    path: &str,
) -> impl Iterator<Item = (&'map String, &'map T)> {
    let inside = format!("{path}/");
    let range = (Bound::Included(inside.as_str()), Bound::Unbounded);
    names.range::<str, _>(range).take_while(move |(name, _)| name.starts_with(&inside))
}

/// Takes out of a map what it has for `path` and for names below it, each without the text of `path`.
pub fn take_with_below<T>(names: &mut BTreeMap<String, T>, path: &str) -> Vec<(String, T)> {
    let inside = below(names, path).map(|(name, _)| name.clone());
    let all: Vec<String> = inside.chain([path.to_owned()]).collect();
    let taken =
        all.into_iter().filter_map(|name| Some((name[path.len()..].to_owned(), names.remove(&name)?)));
    taken.collect()
}

/// Of these places, in which filesystems are mounted, the one that a path lies on.
pub fn mount_point_of<'places>(path: &str, mount_points: &'places [String]) -> Option<&'places str> {
    let covers = |place: &&str| {
        let rest = path.strip_prefix(place.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    mount_points.iter().map(String::as_str).filter(covers).max_by_key(|place| place.len())
}

/// True for what is no file: devices, what the kernel makes up, and memory that looks like a file (memfd_create).
pub fn is_pseudo(path: &str) -> bool {
    // /dev/shm holds files.
    let is_below =
        |folder: &str| path == folder || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    ["/dev", "/proc", "/sys"].into_iter().any(is_below) && !is_below("/dev/shm")
        || path.starts_with("/memfd:")
}

/// A name as the text of a recording. Bytes that are no UTF-8 are spelled `\\xff`, and the backslash of a name that looks like that
/// `\\x5c`: [`bytes_of`] gives the same bytes again.
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    if !bytes.windows(2).any(|two| two == ESCAPE) {
        return name_of(bytes);
    }
    let mut escaped = Vec::with_capacity(bytes.len() + 8);
    for (at, byte) in bytes.iter().enumerate() {
        escaped.push(*byte);
        if bytes[at..].starts_with(ESCAPE) {
            escaped.extend(b"x5c");
        }
    }
    Cow::Owned(name_of(&escaped).into_owned())
}

/// The bytes of a name, by the text of a recording.
pub fn bytes_of(text: &str) -> Cow<'_, [u8]> {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::new();
    while let Some(at) = rest.windows(4).position(|four| escaped(four).is_some()) {
        bytes.extend_from_slice(&rest[..at]);
        bytes.extend(escaped(&rest[at..at + 4]));
        rest = &rest[at + 4..];
    }
    if bytes.is_empty() {
        return Cow::Borrowed(rest);
    }
    bytes.extend_from_slice(rest);
    Cow::Owned(bytes)
}

const ESCAPE: &[u8] = b"\\x";

/// The byte that four letters stand for, where [`text_of`] makes such letters.
fn escaped(four: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(four.strip_prefix(ESCAPE)?).ok()?;
    let is_ours = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let byte = u8::from_str_radix(digits, 16).ok()?;
    (is_ours && (byte >= 0x80 || byte == b'\\')).then_some(byte)
}

/// What a text in quotes says, with strace's escapes resolved; `None` where it is none.
pub fn unquoted(text: &str) -> Option<Vec<u8>> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<&u8>, radix| byte.and_then(|byte| char::from(*byte).to_digit(radix));
        let (mut value, radix, most) = match rest.peek()? {
            b'x' => {
                rest.next();
                (0, 16, 2)
            }
            b'0'..=b'7' => (0, 8, 3),
            _ => {
                let letter = rest.next()?;
                let known = [
                    (b'n', b'\n'),
                    (b't', b'\t'),
                    (b'r', b'\r'),
                    (b'v', 11),
                    (b'f', 12),
                    (b'a', 7),
                    (b'b', 8),
                ];
                let found = known.iter().find(|(name, _)| *name == letter).map(|(_, byte)| *byte);
                bytes.push(found.unwrap_or(letter));
                continue;
            }
        };
        for _ in 0..most {
            let Some(found) = digit(rest.peek(), radix) else { break };
            value = value * radix + found;
            rest.next();
        }
        bytes.push(u8::try_from(value & 0xff).ok()?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_on_the_deepest_filesystem_that_is_mounted_above_it() {
        let places = ["/", "/data", "/data/app"].map(str::to_owned);
        let of = |path| mount_point_of(path, &places);
        let found = ["/", "/usr/lib", "/data", "/database", "/data/x/y", "/data/app", "/data/app/z"].map(of);
        let wanted = ["/", "/", "/data", "/", "/data", "/data/app", "/data/app"];
        assert_eq!(found, wanted.map(Some));
        assert_eq!(mount_point_of("/x", &places[1..]), None);
    }

    #[test]
    fn a_path_is_what_the_kernel_takes_it_for() {
        for (directory, path, found) in [
            ("/a/b", "c", "/a/b/c"),
            ("/a/b", "../c//d/.", "/a/c/d"),
            ("/a", "/x/../../y", "/y"),
            ("/", ".", "/"),
            ("/a", "", "/a"),
        ] {
            assert_eq!(absolute(directory, path), found, "{path} in {directory}");
        }
        assert_eq!(
            ["/dev/null", "/dev/shm/a", "/proc", "/device"].map(is_pseudo),
            [true, false, true, false]
        );
    }

    #[test]
    fn a_name_has_the_same_bytes_again() {
        let names: [(&[u8], &str); 6] = [
            (b"plain", "plain"),
            (b"\xff\xfe\x80", "\\xff\\xfe\\x80"),
            (b"\\xff\\", "\\x5cxff\\"),
            (b"a\\xzz\xff", "a\\x5cxzz\\xff"),
            ("\u{fffd}\u{e4}".as_bytes(), "\u{fffd}\u{e4}"),
            (b"\\x5c\\x", "\\x5cx5c\\x5cx"),
        ];
        for (bytes, text) in names {
            assert_eq!((&*text_of(bytes), &*bytes_of(text)), (text, bytes), "{text}");
        }
        assert_eq!(&*bytes_of("\\x41\\xFF\\x"), b"\\x41\\xFF\\x", "made by nobody");
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(unquoted(r#""a\"\n\x41\1012\\""#), Some(b"a\"\nAA2\\".to_vec()));
        assert_eq!([unquoted("NULL"), unquoted("\"a"), unquoted("\"a\\\"")], [None, None, None]);
    }
}
