//! Goal: connections that share flushes lose nothing that was acknowledged to any of them.
//! Method: programs of two and three connections, each stopped inside of a commit or a checkpoint while others go on;
//! cut the power at each flush, in every state that it may leave; recover with waldio and with stock SQLite; what is
//! there must be a prefix of the order in which the write lock was given back, no older than what was acknowledged.

mod support;

use support::acts::Terms;
use support::group_plan::{CORE, GroupStats, all_choices, hold_group, programs};
use support::machine::{Machine, Side};

fn group_holds(side: Side, programs: &[support::turns::Program]) -> GroupStats {
    let machine = Machine::watched(side);
    let (judge, stock) = (Machine::new(side), Machine::new(Side::Stock));
    let judges = if side == Side::Stock { vec![&stock] } else { vec![&judge, &stock] };
    hold_group(&machine, judges, programs, Terms::default())
}

#[test]
fn stock_loses_nothing_of_two_connections() {
    group_holds(Side::Stock, &programs(&CORE, 2, 2, 40));
}

#[test]
fn flushes_lose_nothing_of_two_connections() {
    group_holds(Side::Flush, &programs(&CORE, 2, 3, 0));
}

#[test]
fn every_pair_of_acts_is_safe() {
    group_holds(Side::Flush, &programs(&all_choices(), 2, 2, 0));
}
