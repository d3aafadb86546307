//! Rust source with its comments, strings and unit tests blanked, so that a word found is a word compiled.

/// `source` with every comment and every string or character literal replaced by spaces; line breaks stay, so line
/// numbers hold. Knows nested comments, raw strings and lifetimes; macros are text like any other.
pub fn without_comments_and_strings(source: &str) -> String {
    let characters: Vec<char> = source.chars().collect();
    let mut output = String::with_capacity(source.len());
    let mut at = 0;
    while at < characters.len() {
        let end = literal_end(&characters, at).unwrap_or(at);
        if end == at {
            output.push(characters[at]);
            at += 1;
        } else {
            output.extend(characters[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    output
}

/// Blanks every item under `#[cfg(test)]`, up to the `;` or the closing brace that ends it. Takes and gives code
/// without comments and strings.
pub fn without_unit_tests(code: &str) -> String {
    let mut output = code.to_owned();
    while let Some(start) = output.find("#[cfg(test)]") {
        let length = item_length(&output[start..]);
        let blank: String =
            output[start..start + length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        output.replace_range(start..start + length, &blank);
    }
    output
}

/// Each identifier of `code` with its line (first is 1).
pub fn identifiers(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().flat_map(|(index, line)| {
        line.split(|c: char| !is_identifier(c))
            .filter(|word| !word.is_empty())
            .map(move |word| (index + 1, word))
    })
}

/// True for a character that an identifier may hold.
pub fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (offset, character) in code.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth <= 1 => return offset + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// Where the comment or literal that begins at `at` ends; `None` when none begins there.
fn literal_end(characters: &[char], at: usize) -> Option<usize> {
    let rest = &characters[at..];
    if rest.starts_with(&['/', '/']) {
        return Some(at + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()));
    }
    if rest.starts_with(&['/', '*']) {
        return Some(at + block_comment_length(rest));
    }
    let starts_word = at == 0 || !is_identifier(characters[at - 1]);
    if rest[0] == 'r' && starts_word {
        return raw_string_length(rest).map(|length| at + length);
    }
    match rest[0] {
        '"' => Some(at + quoted_length(rest, '"')),
        // 'a' and '\n' are literals, 'a without a closing quote is a lifetime.
        '\'' if rest.get(1) == Some(&'\\') || rest.get(2) == Some(&'\'') => {
            Some(at + quoted_length(rest, '\''))
        }
        _ => None,
    }
}

fn block_comment_length(rest: &[char]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at + 1 < rest.len() {
        match (rest[at], rest[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn raw_string_length(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return None;
    }
    let mut close = vec!['"'];
    close.resize(1 + hashes, '#');
    let body = hashes + 2;
    let end = rest[body..].windows(close.len()).position(|window| window == close);
    Some(end.map_or(rest.len(), |offset| body + offset + close.len()))
}

fn quoted_length(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<String> {
        identifiers(&without_comments_and_strings(source)).map(|(_, word)| word.to_owned()).collect()
    }

    #[test]
    fn comments_and_strings_are_no_code() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
        assert_eq!(words(r##"a("b \" c", r#"d " e"#, 'f', '\'', g)"##), ["a", "g"]);
    }

    #[test]
    fn lifetimes_and_names_ending_in_r_are_code() {
        assert_eq!(
            words("fn a<'b>(c: &'b str) { for d in var\"x\" {} }"),
            ["fn", "a", "b", "c", "b", "str", "for", "d", "in", "var"]
        );
    }

    #[test]
    fn line_numbers_survive() {
        let code = without_comments_and_strings("\"a\nb\"\n/*\n*/ c");
        assert_eq!(identifiers(&code).collect::<Vec<_>>(), [(4, "c")]);
    }

    #[test]
    fn unit_tests_are_blanked_and_what_follows_is_not() {
        let code =
            without_unit_tests("a\n#[cfg(test)]\nmod tests { fn b() { c } }\nd\n#[cfg(test)]\nmod e;\nf");
        assert_eq!(identifiers(&code).collect::<Vec<_>>(), [(1, "a"), (4, "d"), (7, "f")]);
    }
}
