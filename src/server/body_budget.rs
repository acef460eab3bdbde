//! The memory budget for bodies, which all callers share.

use super::share::{BudgetExceeded, Permit, Pool, Share};

/// Bytes of each body that the pool does not count: a request takes as much without a body.
const FIRST_BODY_BYTES: usize = 2 << 10;
/// Divisor of a connection's even share once the pool is exhausted. Beside a hundred connections that
/// take all they can, the share holds a body of 300 KB. Two thousand such connections hold 310 MiB of
/// bodies in all, with the default pool of 64 MiB.
const SPLIT: usize = 2;

/// The budget of one connection, in bytes. The first 2 KiB of each body are not counted.
#[derive(Debug, Clone, Default)]
pub struct BodyBudget(Share);

impl BodyBudget {
    /// A pool of `bytes` bytes for the bodies of all connections.
    #[must_use]
    pub fn pool(bytes: u32) -> Pool {
        Pool::new(bytes as usize, SPLIT)
    }

    /// The budget of a new connection.
    #[must_use]
    pub fn of_connection(pool: &Pool) -> Self {
        Self(pool.share())
    }

    /// Resizes `permit` to the need of a body of `bytes` bytes.
    ///
    /// # Errors
    /// When the pool is exhausted and the connection has its share; `permit` then stays as it was.
    pub fn take(&self, permit: &mut Permit, bytes: usize) -> Result<(), BudgetExceeded> {
        self.0.resize(permit, bytes.saturating_sub(FIRST_BODY_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_all_bodies_is_bounded_except_for_the_first_bytes_of_each() {
        let pool = BodyBudget::pool(100);
        let [one, other] = [(); 2].map(|()| BodyBudget::of_connection(&pool));
        let [mut first, mut second] = [Permit::default(), Permit::default()];
        one.take(&mut first, FIRST_BODY_BYTES).expect("not counted");
        assert_eq!(pool.taken(), 0);
        one.take(&mut first, FIRST_BODY_BYTES + 70).expect("there must be room");
        other.take(&mut second, FIRST_BODY_BYTES + 31).expect_err("thirty are left");
        other.take(&mut second, FIRST_BODY_BYTES + 30).expect("thirty are left");
        one.take(&mut first, 0).expect("must shrink");
        other.take(&mut second, FIRST_BODY_BYTES + 100).expect("the pool must be full");
        one.take(&mut first, usize::MAX).expect_err("the pool is exhausted");
        drop(second);
        one.take(&mut first, FIRST_BODY_BYTES + 100).expect("the pool must be full again");
    }
}
