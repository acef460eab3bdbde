//! Fair shares of a limited resource: a connection that takes much cannot starve the others.
//!
//! Connections take from the pool until it is exhausted. After that, a connection may still take up
//! to its share: the pool's capacity divided by the number of connections that hold any of it. Not
//! even a hundred connections can therefore starve the next one. The price is that a pool may be
//! overdrawn: with `n` connections that each take their maximum, by less than
//! `capacity / split × ln(n)`.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// A resource that connections share: requests, or bytes of memory.
#[derive(Debug, Clone)]
pub struct Pool(Arc<State>);

#[derive(Debug)]
struct State {
    capacity: usize,
    split: usize,
    // Relaxed everywhere: each change is one operation, and no other data depends on the counters.
    taken: AtomicUsize,
    /// Number of connections that hold any of it.
    holders: AtomicUsize,
}

/// The part of a pool that one connection holds.
#[derive(Debug, Clone)]
pub struct Share(Arc<Holder>);

#[derive(Debug)]
struct Holder {
    pool: Pool,
    held: AtomicUsize,
}

/// An amount taken from a pool; dropping it returns the amount.
#[derive(Debug, Default)]
#[must_use = "dropping it returns the amount to the pool"]
pub struct Permit {
    amount: usize,
    /// `None` while the amount is 0.
    from: Option<Share>,
}

/// The pool is exhausted, and the connection has its share.
#[derive(Debug)]
pub struct BudgetExceeded;

impl Pool {
    /// A pool of `capacity`. Once it is exhausted, a connection may hold 1/`split` of an even
    /// division.
    #[must_use]
    pub fn new(capacity: usize, split: usize) -> Self {
        let (taken, holders) = Default::default();
        Self(Arc::new(State { capacity, split, taken, holders }))
    }

    /// The share of a new connection, which holds nothing yet.
    #[must_use]
    pub fn share(&self) -> Share {
        Share(Arc::new(Holder { pool: self.clone(), held: AtomicUsize::new(0) }))
    }

    /// The amount that all connections hold.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.0.taken.load(Relaxed)
    }
}

impl Share {
    /// Takes an amount.
    ///
    /// # Errors
    /// When the pool is exhausted, and the connection would exceed its share.
    pub fn take(&self, amount: usize) -> Result<Permit, BudgetExceeded> {
        let mut permit = Permit::default();
        self.resize(&mut permit, amount)?;
        Ok(permit)
    }

    /// Takes or returns the difference, so that `permit` is `amount`.
    ///
    /// # Errors
    /// As [`Share::take`]; `permit` then stays as it was.
    pub fn resize(&self, permit: &mut Permit, amount: usize) -> Result<(), BudgetExceeded> {
        if amount > permit.amount {
            self.add(amount - permit.amount)?;
        } else {
            self.give_back(permit.amount - amount);
        }
        permit.amount = amount;
        permit.from = (amount > 0).then(|| self.clone());
        Ok(())
    }

    fn add(&self, more: usize) -> Result<(), BudgetExceeded> {
        let Holder { pool: Pool(pool), held } = &*self.0;
        let mine = held.fetch_add(more, Relaxed).saturating_add(more);
        // Only a connection that holds something counts: idle ones take nothing from the shares of
        // others.
        if mine == more {
            pool.holders.fetch_add(1, Relaxed);
        }
        // Taken first and returned on failure: two connections that ask at once cannot both see
        // room for themselves alone.
        let all = pool.taken.fetch_add(more, Relaxed).saturating_add(more);
        let share = || pool.capacity / pool.split / pool.holders.load(Relaxed).max(1);
        // At least one: a connection without a request may always send one, however many others do.
        if all <= pool.capacity || mine <= share().max(1) {
            return Ok(());
        }
        self.give_back(more);
        Err(BudgetExceeded)
    }

    fn give_back(&self, amount: usize) {
        if amount == 0 {
            return;
        }
        let Holder { pool: Pool(pool), held } = &*self.0;
        pool.taken.fetch_sub(amount, Relaxed);
        if held.fetch_sub(amount, Relaxed) == amount {
            pool.holders.fetch_sub(1, Relaxed);
        }
    }
}

impl Default for Share {
    /// A share of an unlimited pool.
    fn default() -> Self {
        Pool::new(usize::MAX, 1).share()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(share) = &self.from {
            share.give_back(self.amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(share: &Share) -> Vec<Permit> {
        std::iter::from_fn(|| share.take(1).ok()).collect()
    }

    #[test]
    fn one_connection_may_take_everything_and_the_next_has_its_share() {
        let pool = Pool::new(100, 1);
        let first = pool.share();
        let mut held = take_all(&first);
        assert_eq!(held.len(), 100);
        let second = take_all(&pool.share());
        assert_eq!(second.len(), 50);
        held.truncate(20);
        assert_eq!(held.len() + second.len() + take_all(&first).len(), 100);
    }

    #[test]
    fn a_hundred_connections_at_their_maximum_leave_a_share_for_the_next() {
        let pool = Pool::new(2000, 1);
        let held: Vec<Vec<Permit>> = (0..100).map(|_| take_all(&pool.share())).collect();
        assert_eq!(take_all(&pool.share()).len(), 2000 / 101);
        // 2,000 and a harmonic series: less than 2,000 × (1 + ln 101).
        assert!(pool.taken() < 11_300, "{}", pool.taken());
        drop(held);
        assert_eq!(pool.taken(), 0);
        assert_eq!(take_all(&pool.share()).len(), 2000);
    }

    #[test]
    fn a_share_is_never_less_than_one() {
        let pool = Pool::new(1, 1);
        let [_first, _second] = [(); 2].map(|()| pool.share().take(1).expect("every connection"));
        let share = pool.share();
        let _held = share.take(1).expect("every connection");
        assert!(share.take(1).is_err());
    }

    #[test]
    fn an_amount_grows_and_shrinks() {
        let pool = Pool::new(100, 4);
        let share = pool.share();
        let mut taken = share.take(60).expect("room");
        share.resize(&mut taken, 100).expect("room");
        share.resize(&mut taken, 101).expect_err("all is taken");
        assert_eq!(pool.taken(), 100);
        let other = pool.share();
        let mut others = other.take(12).expect("a fourth of a half");
        other.resize(&mut others, 13).expect_err("more than its share");
        share.resize(&mut taken, 10).expect("it gives back");
        other.resize(&mut others, 90).expect("room");
        drop((taken, others));
        assert_eq!(pool.taken(), 0);
    }
}
