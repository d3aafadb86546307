//! Statistics and the result format of `joj`.
