//! Cyclic redundancy checks as filesystems use them: least significant bit first, without a final inversion.

/// Castagnoli's polynomial, reflected: ext4, XFS, Btrfs.
pub const CASTAGNOLI: u32 = 0x82f6_3b78;

/// IEEE 802.3's polynomial, reflected: F2FS, NILFS2.
pub const ETHERNET: u32 = 0xedb8_8320;

/// The check of `bytes` that continues `seed`. Bit by bit: it sees some kilobytes for each filesystem.
pub fn crc32(polynomial: u32, seed: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(seed, |check, &byte| {
        (0..8).fold(check ^ u32::from(byte), |check, _| {
            if check & 1 == 1 { (check >> 1) ^ polynomial } else { check >> 1 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_words_of_the_catalogue_come_out() {
        assert_eq!(!crc32(CASTAGNOLI, !0, b"123456789"), 0xe306_9283);
        assert_eq!(!crc32(ETHERNET, !0, b"123456789"), 0xcbf4_3926);
    }
}
