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

/// Takes so many bytes from the front of a queue, or all that there are.
pub fn take_front(queue: &mut VecDeque<u8>, count: usize) -> Vec<u8> {
    let count = count.min(queue.len());
    let mut taken = Vec::with_capacity(count);
    // Two pieces are copied as such: an iterator would go by single bytes.
    let (first, second) = queue.as_slices();
    for piece in [first, second] {
        let left = count - taken.len();
        taken.extend_from_slice(piece.get(..left).unwrap_or(piece));
    }
    queue.drain(..count);
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_of_a_queue_is_taken() {
        for first in 0..8 {
            let mut queue = VecDeque::with_capacity(8);
            queue.extend(core::iter::repeat_n(0, first));
            queue.drain(..first);
            queue.extend(1..=8);
            assert_eq!(take_front(&mut queue, 3), [1, 2, 3]);
            assert_eq!(take_front(&mut queue, 0), []);
            assert_eq!(take_front(&mut queue, 9), [4, 5, 6, 7, 8]);
        }
    }

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
