//! How large the pieces are in which a log grows.

use super::*;

#[test]
fn pieces_double_where_the_place_takes_them_in_half_the_time_and_halve_elsewhere() {
    let half = PIECE_TIME_MAX / 2;
    let just_below = half.checked_sub(Duration::from_nanos(1)).unwrap();
    assert_eq!(next_piece(512 << 10, just_below), 1 << 20);
    assert_eq!(next_piece(512 << 10, half), 256 << 10);
    assert_eq!(next_piece(PIECE_BYTES.1, Duration::ZERO), PIECE_BYTES.1);
    assert_eq!(next_piece(PIECE_BYTES_MIN, PIECE_TIME_MAX), PIECE_BYTES_MIN);
}
