//! Rendezvous hashing: each conductor draws a number for each node, and the highest number wins. Every conductor that knows
//! the names of all computes the same winner. A conductor that comes or goes moves its own nodes alone, and the nodes of
//! one that goes are spread over all that stay.

use uuid::Uuid;

/// The number that a conductor draws for a node, the same on every host and in every version.
pub(crate) fn draw(conductor: &str, node: Uuid) -> u64 {
    // A name and an identity never make the text of another pair: no name has the byte between them.
    let bytes = conductor.bytes().chain([0xff]).chain(*node.as_bytes());
    // FNV-1a, whose last bytes hardly reach the high bits; so these are mixed at the end, as SplitMix64 does.
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const NODES: u128 = 4000;

    fn winner<'a>(conductors: &[&'a str], node: u128) -> &'a str {
        // Identities that people choose differ in few bits.
        let drawn = |name: &&&str| draw(name, Uuid::from_u128(node));
        conductors.iter().max_by_key(drawn).unwrap()
    }

    /// Conductors of different versions over one store must agree.
    #[test]
    fn e08_the_numbers_never_change() {
        let nodes = [Uuid::nil(), Uuid::from_u128(1), Uuid::max()];
        let drawn: Vec<_> = nodes.iter().map(|node| draw("conductor-1", *node)).collect();
        assert_eq!(drawn, [3112018371268796201, 4886659283225941377, 5261985240309361537]);
    }

    #[test]
    fn e08_nodes_are_spread_over_all_conductors() {
        for names in [&["a", "b"][..], &["c1", "c2", "c3"], &["host-01", "host-02", "host-03", "host-04"]] {
            let mut led: BTreeMap<&str, u128> = BTreeMap::new();
            (0..NODES).for_each(|node| *led.entry(winner(names, node)).or_default() += 1);
            let fair = NODES / names.len() as u128;
            for name in names {
                let has = led[name];
                assert!(has > fair * 9 / 10 && has < fair * 11 / 10, "{name} has {has}, fair are {fair}");
            }
        }
    }

    #[test]
    fn e08_a_conductor_that_comes_or_goes_moves_its_own_nodes_alone() {
        let (few, many) = (["c1", "c2", "c3"], ["c1", "c2", "c3", "c4"]);
        let mut moved = 0;
        for node in 0..NODES {
            let (before, after) = (winner(&few, node), winner(&many, node));
            assert!(before == after || after == "c4", "{node} moves from {before} to {after}");
            moved += u128::from(before != after);
        }
        assert!(moved > NODES * 9 / 40 && moved < NODES * 11 / 40, "{moved}");
    }
}
