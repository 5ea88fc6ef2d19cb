//! Places of lists: one that has become short gives most of them back. What a list has in it is charged to somebody; places of things that are gone are
//! nobody's, and who fills and empties one list after the other would have this program keep them all.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Places that every list may keep.
const KEPT: usize = 4;

/// Places that are left to a list of so many, if it has more than twice as many as it needs. It takes as long as a quarter of it has taken to go.
fn left(len: usize, places: usize) -> Option<usize> {
    (places > KEPT && places / 2 > len).then(|| (len + len / 2).max(KEPT))
}

/// Gives back places of a list.
pub fn shorten<T>(list: &mut Vec<T>) {
    if let Some(places) = left(list.len(), list.capacity()) {
        list.shrink_to(places);
    }
}

/// Gives back places of a queue.
#[inline]
pub fn shorten_queue<T>(queue: &mut VecDeque<T>) {
    if let Some(places) = left(queue.len(), queue.capacity()) {
        queue.shrink_to(places);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_places_for_what_is_in_them() {
        let (mut list, mut queue) = (Vec::new(), VecDeque::new());
        let mut moved = 0;
        for round in 0..8 {
            for _ in 0..1000 {
                list.push(round);
                queue.push_back(round);
            }
            for _ in 0..[1000, 999, 500, 10][round % 4] {
                list.pop();
                queue.pop_front();
                let before = queue.capacity();
                shorten(&mut list);
                shorten_queue(&mut queue);
                moved += if before == queue.capacity() { 0 } else { queue.len() };
                let most = (2 * queue.len() + 1).max(KEPT);
                assert!(
                    list.capacity() <= most && queue.capacity() <= most,
                    "{} of {most}",
                    queue.capacity()
                );
            }
        }
        assert!(moved < 5 * 8000, "{moved} were moved");
    }
}
