//! An option for waldio on the command line.

/// An option of waldio's: its name in small letters, and its value.
/// # Errors
/// Where it is not NAME=VALUE.
pub fn parse_option(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or("it has no `=`; write NAME=VALUE, for example persist=flush")?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("`{name}` is no option name; take letters, digits and underscores"));
    }
    Ok((name.to_ascii_lowercase(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_waldio_need_a_name_and_a_value() {
        assert_eq!(parse_option("Persist=fua"), Ok(("persist".to_owned(), "fua".to_owned())));
        assert!(
            parse_option("persist").is_err() && parse_option("=1").is_err() && parse_option("a b=1").is_err()
        );
    }
}
