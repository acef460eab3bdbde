//! Room for bodies: those of all callers together take only so much memory.

use super::share::{NoRoom, Pool, Share, Taken};

/// Room that every body has beside the pool: what a request takes anyway.
const FIRST_BODY_BYTES: usize = 2 << 10;
/// A connection's part of an even division once all room is taken: bodies are large, and a pool that
/// two thousand connections overdraw must still fit a container's memory.
const SPLIT: usize = 4;

/// Room of one connection, in bytes: for what its bodies are larger than the room each body has.
#[derive(Debug, Clone, Default)]
pub struct Room(Share);

impl Room {
    /// Memory for the bodies of all connections.
    #[must_use]
    pub fn pool(bytes: u32) -> Pool {
        Pool::new(bytes as usize, SPLIT)
    }

    /// The room of a new connection.
    #[must_use]
    pub fn of_connection(pool: &Pool) -> Self {
        Self(pool.share())
    }

    /// Sees to it that `taken` is what a body of `bytes` needs.
    ///
    /// # Errors
    /// When other connections have taken the room; what was taken before stays so.
    pub fn take(&self, taken: &mut Taken, bytes: usize) -> Result<(), NoRoom> {
        self.0.resize(taken, bytes.saturating_sub(FIRST_BODY_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_take_together_is_bounded_but_for_the_first_bytes_of_each() {
        let pool = Room::pool(100);
        let [one, other] = [(); 2].map(|()| Room::of_connection(&pool));
        let [mut first, mut second] = [Taken::default(), Taken::default()];
        one.take(&mut first, FIRST_BODY_BYTES).expect("every body has that");
        assert_eq!(pool.taken(), 0);
        one.take(&mut first, FIRST_BODY_BYTES + 70).expect("there must be room");
        other.take(&mut second, FIRST_BODY_BYTES + 31).expect_err("thirty are left");
        other.take(&mut second, FIRST_BODY_BYTES + 30).expect("thirty are left");
        one.take(&mut first, 0).expect("gives back");
        other.take(&mut second, FIRST_BODY_BYTES + 100).expect("all is there");
        one.take(&mut first, usize::MAX).expect_err("nothing is left");
        drop(second);
        one.take(&mut first, FIRST_BODY_BYTES + 100).expect("all is there again");
    }
}
