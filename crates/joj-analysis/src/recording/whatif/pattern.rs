//! `*` for any letters, `?` for one, the others for themselves in either case.

/// True where the whole of a text matches.
pub fn matches(pattern: &str, text: &str) -> bool {
    let lower = |text: &str| -> Vec<char> { text.chars().flat_map(char::to_lowercase).collect() };
    let (pattern, text) = (lower(pattern), lower(text));
    let (mut at, mut from) = (0, 0);
    // Where the last `*` stands, and how far what it takes reaches.
    let mut star = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == text[from] => (at, from) = (at + 1, from + 1),
            _ => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                (at, from) = (star_at + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, is_match) in [
            ("*cache*", "GPUCache", true),
            ("*.cache", "a.cache", true),
            ("*.cache", "a.cache.db", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*", "xaxxbx", true),
            ("*a*b", "xaxxbx", false),
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), is_match, "{pattern} {text}");
        }
    }
}
