//! The rules of the house as a test (see tests/).
