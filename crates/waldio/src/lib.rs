//! The waldio extension.
