//! Room for bodies: those of all callers together take only so much memory.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room that every body has.
const FIRST_BODY_BYTES: usize = 16 << 10;

/// Memory, in bytes, for what of bodies is beyond the room that each has.
#[derive(Debug, Clone)]
pub struct Room(Arc<Semaphore>);

/// Room that is taken until this is dropped.
#[derive(Debug, Default)]
pub struct Taken(Option<OwnedSemaphorePermit>);

/// Others have taken the room.
#[derive(Debug)]
pub struct NoRoom;

impl Room {
    /// Room for so many bytes.
    #[must_use]
    pub fn new(bytes: u32) -> Self {
        Self(Arc::new(Semaphore::new(bytes as usize)))
    }

    /// Takes what is missing for a body of `bytes`. A body that needs none gives back what was taken.
    ///
    /// # Errors
    /// When others have taken it; what was taken before stays so.
    pub fn take(&self, taken: &mut Taken, bytes: usize) -> Result<(), NoRoom> {
        let needed = bytes.saturating_sub(FIRST_BODY_BYTES);
        if needed == 0 {
            taken.0 = None;
            return Ok(());
        }
        let held = taken.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = u32::try_from(needed.saturating_sub(held)).map_err(|_| NoRoom)?;
        let more = Arc::clone(&self.0).try_acquire_many_owned(missing).map_err(|_| NoRoom)?;
        match &mut taken.0 {
            Some(permit) => permit.merge(more),
            None => taken.0 = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_take_together_is_bounded() {
        let room = Room::new(100);
        let [mut first, mut second] = [Taken::default(), Taken::default()];
        room.take(&mut first, FIRST_BODY_BYTES).expect("every body has that");
        room.take(&mut first, FIRST_BODY_BYTES + 60).expect("there must be room");
        room.take(&mut first, FIRST_BODY_BYTES + 70).expect("ten more");
        room.take(&mut second, FIRST_BODY_BYTES + 31).expect_err("thirty are left");
        room.take(&mut second, FIRST_BODY_BYTES + 30).expect("thirty are left");
        room.take(&mut first, 0).expect("gives back");
        room.take(&mut second, FIRST_BODY_BYTES + 100).expect("all is there");
        room.take(&mut first, usize::MAX).expect_err("nothing is left");
        drop(second);
        room.take(&mut first, FIRST_BODY_BYTES + 100).expect("all is there again");
    }
}
