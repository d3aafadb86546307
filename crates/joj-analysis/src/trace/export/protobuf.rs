//! The few of protobuf's wire formats that Perfetto's packets need.

/// A message that is being made.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// An unsigned number, an enumeration or a bool.
    #[must_use]
    pub fn number(mut self, field: u32, value: u64) -> Self {
        self.tag(field, 0);
        self.varint(value);
        self
    }

    /// A `fixed64`.
    #[must_use]
    pub fn fixed(mut self, field: u32, value: u64) -> Self {
        self.tag(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A string.
    #[must_use]
    pub fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// A message inside this one.
    #[must_use]
    pub fn message(self, field: u32, inner: &Message) -> Self {
        self.bytes(field, &inner.0)
    }

    /// How it is written.
    pub fn encoded(&self) -> &[u8] {
        &self.0
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn tag(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_protobufs_own_documentation_come_out() {
        assert_eq!(Message::default().number(1, 150).encoded(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").encoded(), b"\x12\x07testing");
        let inner = Message::default().number(1, 150);
        assert_eq!(Message::default().message(3, &inner).encoded(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::default().fixed(47, 1).encoded(), [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Message::default().number(1, u64::MAX).encoded().len(), 11);
    }
}
