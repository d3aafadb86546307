//! What only the recording machine knows of a path: it is asked there.

use std::fmt;

type Asked<T> = dyn Fn(&str) -> Option<T>;

/// Who is asked about absolute paths, once about each; `None` where there is nothing under a path. By default nobody.
pub struct PathAnswers<T>(Box<Asked<T>>);

impl<T> PathAnswers<T> {
    /// Asked once for each path.
    pub fn new(asked: impl Fn(&str) -> Option<T> + 'static) -> Self {
        Self(Box::new(asked))
    }

    /// What is known of `path`.
    pub fn of(&self, path: &str) -> Option<T> {
        (self.0)(path)
    }
}

impl<T> Default for PathAnswers<T> {
    fn default() -> Self {
        Self::new(|_| None)
    }
}

impl<T> fmt::Debug for PathAnswers<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PathAnswers")
    }
}
