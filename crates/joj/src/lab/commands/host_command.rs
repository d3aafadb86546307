//! A command of the host's as a guest is told of it: whole paths, and the environment.

use std::path::{Path, PathBuf};

use joj_analysis::lab::program_crash::{HostWord, WordPlace};

use crate::lab::job::guest_path;

/// The command with its program's whole path, where it was given by a path. A link stays one: what a program is called tells some of
/// them what to do.
pub fn command(words: &[String]) -> Vec<String> {
    let mut words = words.to_vec();
    if words[0].contains('/')
        && let Ok(path) = std::path::absolute(&words[0])
    {
        words[0] = path.to_string_lossy().into_owned();
    }
    words
}

/// Takes words for files of the directory at hand, where they name one: a guest works in another directory.
#[derive(Debug, Default)]
pub struct HostWords {
    /// Those that were.
    pub taken: Vec<HostWord>,
    /// Why one of them cannot stand for its file, and what to write instead.
    pub impossible: Option<String>,
}

impl HostWords {
    /// The whole path of a word that names such a file; any other word as it is.
    pub fn argument(&mut self, place: WordPlace, word: &str) -> String {
        let path = Path::new(word);
        let is_here = may_be_file(word) && !path.is_absolute() && path.is_file();
        let Some(whole) = std::path::absolute(path).ok().filter(|_| is_here) else { return word.to_owned() };
        self.impossible = self.impossible.take().or_else(|| no_text(word, &whole));
        let file = whole.to_string_lossy().into_owned();
        let taken = HostWord { place, word: word.to_owned(), file: file.clone() };
        if !self.taken.contains(&taken) {
            self.taken.push(taken);
        }
        file
    }

    /// A shell's command with the whole paths of such files, where a word is nothing but one, in quotes or not. A path that a shell would
    /// take for more than a word gets quotes; within others it cannot have them.
    pub fn shell_command(&mut self, place: WordPlace, text: &str) -> String {
        let mut quote = None;
        let parts = quoted_parts(text).into_iter().flat_map(|part| match unquoted(part) {
            Some(word) if may_be_file(word) && Path::new(word).is_file() => vec![part],
            _ if part.starts_with(COMMENT) => vec![part],
            _ => part.split_inclusive(char::is_whitespace).collect(),
        });
        let mut command = String::new();
        for part in parts {
            if quote.is_none() && part.starts_with(COMMENT) {
                command += part;
                continue;
            }
            let raw = part.trim_end();
            let word = unquoted(raw).filter(|_| quote.is_none()).unwrap_or(raw);
            let file = self.argument(place, word);
            let is_plain =
                file.chars().all(|letter| letter.is_alphanumeric() || "/._-+,:@%=".contains(letter));
            if file == word {
                command += raw;
            } else if quote.is_none() && !is_plain {
                command += &format!("'{}'", file.replace('\'', "'\\''"));
            } else {
                if !is_plain && self.impossible.is_none() {
                    self.impossible = Some(format!(
                        "`{word}` stands within quotes, and means {file}, which a shell takes for more than a word; write it \
                         without them, or run joj in a directory whose path has neither spaces nor quotes"
                    ));
                }
                command += &file;
            }
            command += &part[raw.len()..];
            quote = quote_behind(quote, raw);
        }
        command
    }
}

/// With it a shell's word begins that is none: all to the end of the line.
const COMMENT: char = '#';
/// What ends a shell's word, too.
const ENDS_OF_WORDS: &str = ";&|()<>`";

/// True of a word with a `/`, or with a `.` where it is no number. Another one is as often a command, a number or an operator: a file that
/// happens to be called `1`, `done` or `=` is nothing that a command means.
fn may_be_file(word: &str) -> bool {
    word.contains('/') || word.contains('.') && word.parse::<f64>().is_err()
}

/// Why a path cannot be told to the guest, which gets text.
fn no_text(word: &str, whole: &Path) -> Option<String> {
    whole.to_str().is_none().then(|| {
        let whole = whole.display();
        format!("`{word}` means {whole}, whose path is no UTF-8; copy it to a directory whose path is, and run joj there")
    })
}

/// Why the program of a command cannot be told to the guest, if it cannot.
pub fn program_without_text(words: &[String]) -> Option<String> {
    let whole = std::path::absolute(&words[0]).ok().filter(|_| words[0].contains('/'))?;
    no_text(&words[0], &whole)
}

/// A shell's command in parts that end with white space, or in front of and behind what ends a word: none of them ends within quotes. A
/// comment is one part, whatever is in it.
fn quoted_parts(text: &str) -> Vec<&str> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    for (at, letter) in text.char_indices() {
        if at < begin {
            continue;
        }
        if letter == COMMENT && at == begin {
            begin = text[at..].find('\n').map_or(text.len(), |length| at + length);
            parts.push(&text[at..begin]);
            continue;
        }
        let is_end = ENDS_OF_WORDS.contains(letter);
        if !(is_end || letter.is_whitespace()) || quote_behind(None, &text[begin..at]).is_some() {
            continue;
        }
        if is_end {
            parts.push(&text[begin..at]);
            begin = at;
        }
        // What is written to can be no file of the host's: `>` stays with the name behind it.
        if letter == '>' {
            continue;
        }
        let end = at + letter.len_utf8();
        parts.push(&text[begin..end]);
        begin = end;
    }
    parts.push(&text[begin..]);
    parts
}

/// The quote that is open behind `text`, where `open` was open in front of it.
fn quote_behind(open: Option<char>, text: &str) -> Option<char> {
    let mut letters = text.chars();
    let mut quote = open;
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None | Some('"'), '\\') => drop(letters.next()),
            _ => {}
        }
    }
    quote
}

/// What stands between the quotes of a word that is all in quotes, where a shell changes nothing of it.
fn unquoted(word: &str) -> Option<&str> {
    let word = word.trim_end();
    let inner = |quote: char| word.strip_prefix(quote)?.strip_suffix(quote);
    let single = inner('\'').filter(|text| !text.contains('\''));
    single.or_else(|| inner('"').filter(|text| !text.contains(['"', '$', '`', '\\'])))
}

/// The files of this machine that the words of commands, and of shells' commands, name.
pub fn named_files<'a>(words: &[String], shells: impl IntoIterator<Item = &'a String>) -> Vec<PathBuf> {
    let of_shells = shells.into_iter().flat_map(|text| shell_words(text));
    let words = words.iter().cloned().chain(of_shells);
    words.map(PathBuf::from).filter(|file| file.is_file()).collect()
}

/// A file of this machine that a guest does not see.
#[derive(Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Its whole path, links followed.
    pub file: PathBuf,
    /// The directory in its path that the guest has of its own.
    pub place: String,
}

/// The first file of this machine that a command of these words names and its guest does not see. A word that names no file may be one
/// that the command makes there.
pub fn hidden(words: &[String]) -> Option<Hidden> {
    words.iter().find_map(|word| {
        // The kernel's files are the guest's, and mean the same.
        let path = Path::new(word).canonicalize().ok().filter(|path| word.contains('/') && path.is_file())?;
        let place = guest_path::OWN.iter().map(|name| format!("/{name}"));
        let places: Vec<String> = place.collect();
        let asked = std::path::absolute(word).ok()?;
        let within = |path: &Path| places.iter().find(|place| path.starts_with(place)).cloned();
        let place = within(&asked).or_else(|| within(&path))?;
        Some(Hidden { file: path, place })
    })
}

/// The same of a shell's command.
pub fn hidden_in_shell(text: &str) -> Option<Hidden> {
    hidden(&shell_words(text))
}

/// The words of a shell's command without their quotes, and without what stands between commands and before files.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, COMMENT) if word.is_empty() => drop(letters.find(|letter| *letter == '\n')),
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None | Some('"'), '\\') => word.extend(letters.next()),
            (None, ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`') => words.push(std::mem::take(&mut word)),
            (None, _) if letter.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// All variables that are text.
pub fn environment() -> Vec<(String, String)> {
    let all = std::env::vars_os();
    all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name != "TMPDIR")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_keeps_the_name_by_which_it_was_called() {
        let directory = std::env::temp_dir().join(format!("joj-exec-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let link = directory.join("python");
        std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
        let words = |program: &str| command(&[program.to_owned(), "./a".to_owned()]);
        let link = link.to_str().unwrap();
        assert_eq!(words(link), [link, "./a"]);
        assert_eq!(words("sh"), ["sh", "./a"], "it is looked for in PATH");
        let here = std::env::current_dir().unwrap().join("tool");
        assert_eq!(words("./tool"), [here.to_str().unwrap(), "./a"]);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_a_guest_does_not_see_is_told() {
        let own = format!("/tmp/joj-hidden-{}", std::process::id());
        std::fs::write(&own, "").unwrap();
        let link = std::env::current_exe().unwrap().with_extension(format!("link-{}", std::process::id()));
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let hidden =
            |words: &[&str]| hidden(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let found = hidden(&["sh", &own]);
        let behind_link = hidden(&[link.to_str().unwrap()]);
        let in_shell = [format!("sh \"{own}\" a"), format!("test -e '{own}'"), format!("(cat<{own};true)")];
        let in_shell = in_shell.map(|text| hidden_in_shell(&text));
        let seen =
            hidden(&["/bin/sh", "/proc/self/stat", "/tmp/none-of-this-name", "/tmp", "tmp", "/dev/null"]);
        std::fs::remove_file(&link).unwrap();
        std::fs::remove_file(&own).unwrap();
        assert_eq!(found, Some(Hidden { file: PathBuf::from(&own), place: "/tmp".to_owned() }));
        assert!(in_shell.iter().all(|one| *one == found), "{in_shell:?}");
        assert_eq!((behind_link, seen), (found, None));
    }

    #[test]
    fn files_that_a_command_reads_are_known_by_any_name() {
        let whole = std::env::current_dir().unwrap().join("Cargo.toml");
        let shell = format!("sh './Cargo.toml' <\"{}\" || cat none", whole.display());
        let named = named_files(&["cat".to_owned(), "Cargo.toml".to_owned()], [&shell]);
        assert_eq!(named, [PathBuf::from("Cargo.toml"), PathBuf::from("./Cargo.toml"), whole]);
    }

    #[test]
    fn a_shell_s_words_have_no_quotes() {
        let words = shell_words(r#"a "b c"'d'  "e\"f" g\ h|i>>j && 'k;l' """#);
        assert_eq!(words, ["a", "b cd", "e\"f", "g h", "i", "j", "k;l"]);
    }

    /// In a directory whose path is more than one word for a shell.
    #[test]
    fn paths_with_spaces_and_quotes_are_quoted_where_they_can_be() {
        let directory =
            std::env::current_exe().unwrap().with_extension(format!("it's a dir{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for name in ["check.sh", "my check.sh"] {
            std::fs::write(directory.join(name), "").unwrap();
        }
        // Not the process's directory, which other tests share: the way there from it.
        let here = std::env::current_dir().unwrap();
        let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
        let directory_here = up.join(directory.strip_prefix("/").unwrap());
        let name = |name: &str| directory_here.join(name).display().to_string();
        let told = |text: &str| {
            let mut words = HostWords::default();
            (words.shell_command(WordPlace::Check, text), words.taken.len(), words.impossible)
        };
        let whole = |file: &str| here.join(name(file)).display().to_string().replace('\'', "'\\''");
        let answers = [
            told(&format!("sh \"{}\" a", name("my check.sh"))),
            told(&format!("sh \"{}\"", name("check.sh"))),
        ];
        let within = told("sh -c 'cat Cargo.toml x'");
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(answers[0], (format!("sh '{}' a", whole("my check.sh")), 1, None));
        assert_eq!(answers[1], (format!("sh '{}'", whole("check.sh")), 1, None));
        assert_eq!(within, (format!("sh -c 'cat {} x'", here.join("Cargo.toml").display()), 1, None));
    }

    #[test]
    fn a_word_that_is_most_often_no_file_is_none() {
        assert!(["./1", "1/2", "check.py", "v1.2.txt"].iter().all(|word| may_be_file(word)));
        assert!(!["1", "0.5", "-1.5e3", "done", "=", "[", "journal"].iter().any(|word| may_be_file(word)));
    }

    #[test]
    fn a_word_ends_where_it_does_for_a_shell() {
        let told = |text: &str| HostWords::default().shell_command(WordPlace::Check, text);
        let whole = std::env::current_dir().unwrap().join("Cargo.toml").display().to_string();
        for text in [
            "sh ./Cargo.toml;test ! -e g",
            "cat Cargo.toml|wc -l",
            "sh Cargo.toml&&sh Cargo.toml||echo no",
            "(cat <Cargo.toml)",
            "sh Cargo.toml>out 2>&1",
            "test \"$(cat Cargo.toml)\" -a `wc -l Cargo.toml` ; sh Cargo.toml;true",
        ] {
            let expected = text.replace("./Cargo.toml", "Cargo.toml");
            // In the quotes it ends at white space alone: they may have any program's text.
            let expected = expected.replace("Cargo.toml)\"", "@").replace("Cargo.toml", &whole);
            assert_eq!(told(text), expected.replace('@', "Cargo.toml)\""), "{text}");
        }
        for text in [
            "echo >Cargo.toml",
            "echo >>Cargo.toml",
            "echo Cargo.toml\\;x",
            "grep -E 'Cargo.toml|x' f",
            "echo a;b&c|d>e",
            "# it's Cargo.toml;Cargo.toml",
        ] {
            assert_eq!(told(text), text);
        }
        let behind_comment = "true;# it's ./Cargo.toml\nsh Cargo.toml;echo a#b 'x' $# \"#\" Cargo.toml";
        let (comment, behind) = behind_comment.split_once('\n').unwrap();
        let expected = format!("{comment}\n{}", behind.replace("Cargo.toml", &whole));
        assert_eq!(told(behind_comment), expected);
        assert_eq!(
            shell_words(behind_comment),
            ["true", "sh", "Cargo.toml", "echo", "a#b", "x", "$#", "#", "Cargo.toml"]
        );
    }

    #[test]
    fn files_of_this_directory_are_found_from_another_one() {
        let here = std::env::current_dir().unwrap();
        let expected = format!("python3  {}\t--fast src", here.join("Cargo.toml").display());
        let mut words = HostWords::default();
        let check = "python3  Cargo.toml\t--fast src";
        assert_eq!(words.shell_command(WordPlace::Check, check), expected);
        let other = "cat missing.txt && test -e /etc/passwd";
        assert_eq!(words.shell_command(WordPlace::Check, other), other);
        assert_eq!(words.argument(WordPlace::Program, "-v"), "-v");
        words.shell_command(WordPlace::Check, "sh Cargo.toml || cat Cargo.toml");
        words.shell_command(WordPlace::Check, "(sh Cargo.toml;cat <Cargo.toml)&&cat \"Cargo.toml\"|cat");
        let file = here.join("Cargo.toml").display().to_string();
        let taken = HostWord { place: WordPlace::Check, word: "Cargo.toml".to_owned(), file };
        assert_eq!(words.taken, [taken], "each once");
    }
}
