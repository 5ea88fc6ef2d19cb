//! Promises that a program was made, and whether they are kept.
//!
//! A step is *acknowledged* when its call has come back, and *begun* when the call was made. Of what is acknowledged:
//!
//! - a byte that was synced is there, and bytes behind it are those that were written, as far as they are there;
//! - a file has one name at any time: the old or the new one, also if that was another file's;
//! - a name that was taken away does not come back.

use mix::{Content, File, Mix, Name, STAMP, State, Step};
use std::collections::BTreeMap;

/// Files that were found, by their names.
pub type Found = BTreeMap<Name, Vec<u8>>;

/// Steps when names are safe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// When a file is synced: a file system by itself.
    Syncs,
    /// Also when a call that changes names has come back: a server of files.
    Names,
}

/// Steps, and what there is after each.
#[derive(Debug)]
pub struct History {
    /// The steps.
    pub steps: Vec<Step>,
    /// State `n` is the one after `n` steps.
    states: Vec<State>,
    promise: Promise,
}

impl History {
    /// The first steps of a seed.
    pub fn new(seed: u64, count: usize, promise: Promise) -> History {
        let mut mix = Mix::new(seed);
        let (mut steps, mut states) = (Vec::new(), vec![State::default()]);
        for _ in 0..count {
            steps.extend(mix.next());
            states.push(mix.state().clone());
        }
        History { steps, states, promise }
    }

    /// After how many steps names were safe last, when so many are acknowledged.
    fn safe(&self, acknowledged: usize) -> usize {
        let is_safe = |step: &Step| step.is_sync() || self.promise == Promise::Names && step.changes_names();
        self.steps[..acknowledged].iter().rposition(is_safe).map_or(0, |place| place + 1)
    }

    /// Whether files that were found may be those of a loss of power, when so many steps were acknowledged, and so many begun. If not, the reason.
    pub fn judge(&self, acknowledged: usize, begun: usize, found: &Found) -> Result<(), String> {
        let safe = self.safe(acknowledged);
        let mut reason = String::new();
        // The last state that may be is the likeliest.
        for state in self.states[safe..=begun].iter().rev() {
            match self.fits(state, acknowledged, begun, found) {
                Ok(()) => return Ok(()),
                // A state whose names are right tells more.
                Err(why) if reason.is_empty() || why.contains(FILE) => reason = why,
                Err(_) => {}
            }
        }
        let names = |state: &State| {
            state
                .names
                .iter()
                .map(|(name, file)| format!("{}={file}", name.path()))
                .collect::<Vec<_>>()
                .join(" ")
        };
        Err(format!(
            "{reason}; steps {safe} to {begun}, {acknowledged} acknowledged: {:?}\nfirst {}\nlast {}",
            &self.steps[safe..begun],
            names(&self.states[safe]),
            names(&self.states[begun]),
        ))
    }

    fn fits(&self, state: &State, acknowledged: usize, begun: usize, found: &Found) -> Result<(), String> {
        let (has, expected): (Vec<_>, Vec<_>) = (found.keys().collect(), state.names.keys().collect());
        if has != expected {
            let paths =
                |names: Vec<&Name>| names.iter().map(|name| name.path()).collect::<Vec<_>>().join(" ");
            return Err(format!("there are {}, and not {}", paths(has), paths(expected)));
        }
        state.names.iter().try_for_each(|(name, &file)| {
            let content = found.get(name).map_or(&[][..], Vec::as_slice);
            self.is_whole(file, acknowledged, begun, content)
                .map_err(|why| format!("{FILE}{file}, {}, {why}", name.path()))
        })
    }

    /// Whether bytes are those of a file: all that was synced, and of what was written since, a beginning.
    fn is_whole(&self, file: File, acknowledged: usize, begun: usize, content: &[u8]) -> Result<(), String> {
        let at = |steps: usize| self.states[steps].files.get(file).copied().unwrap_or_default();
        let (safe, last, len) = (at(acknowledged), at(begun), content.len() as u64);
        if len < safe.len_safe || len > last.len {
            return Err(format!(
                "has {len} bytes: {} are acknowledged, and {} were written",
                safe.len_safe, last.len
            ));
        }
        let mut expected = mix::bytes(file, 0, content.len());
        if let (Some(stamp), Some(original)) = (content.first_chunk::<STAMP>(), expected.first_chunk_mut()) {
            let number = u64::from_le_bytes(*stamp);
            let may_be = |content: &Content| {
                if content.stamp == 0 { stamp == original } else { number == content.stamp }
            };
            let states = self.states.get(self.first_with(file, safe.stamp_safe)..=begun).unwrap_or_default();
            let is_known = states.iter().filter_map(|state| state.files.get(file)).any(may_be);
            if !is_known {
                return Err(format!(
                    "begins with {number:#x}, and {:#x} is acknowledged (0: as it was)",
                    safe.stamp_safe
                ));
            }
            *original = *stamp;
        }
        match content.iter().zip(&expected).position(|(has, expected)| has != expected) {
            None => Ok(()),
            Some(at) => {
                let zeros =
                    if content[at..].iter().all(|&byte| byte == 0) { ", zeros to its end" } else { "" };
                Err(format!("has other bytes than were written from {at} of {len} on{zeros}"))
            }
        }
    }

    /// After how many steps a file had a stamp first.
    fn first_with(&self, file: File, stamp: u64) -> usize {
        let has = |state: &State| state.files.get(file).is_some_and(|content| content.stamp == stamp);
        self.states.iter().position(has).unwrap_or(0)
    }
}

/// Beginning of a reason why a file's content cannot be.
const FILE: &str = "file ";

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a state, whole.
    fn whole(state: &State) -> Found {
        let content = |file: File| {
            let mut bytes = mix::bytes(file, 0, state.files[file].len as usize);
            if state.files[file].stamp > 0 {
                bytes[..STAMP].copy_from_slice(&state.files[file].stamp.to_le_bytes());
            }
            bytes
        };
        state.names.iter().map(|(&name, &file)| (name, content(file))).collect()
    }

    const STEPS: usize = 300;

    #[test]
    fn what_was_done_fits() {
        for promise in [Promise::Syncs, Promise::Names] {
            let history = History::new(7, STEPS, promise);
            for steps in 0..=STEPS {
                let found = whole(&history.states[steps]);
                assert_eq!(history.judge(steps, steps, &found), Ok(()));
                // It may also have come back, and nobody has heard of it.
                assert_eq!(history.judge(steps.saturating_sub(1), steps, &found), Ok(()));
            }
        }
    }

    /// All that was promised is missed, in one file after the other.
    #[test]
    fn what_is_missing_is_noticed() {
        let history = History::new(7, STEPS, Promise::Names);
        let (mut lost, mut short, mut other, mut back) = (0, 0, 0, 0);
        for steps in 1..=STEPS {
            let state = &history.states[steps];
            let found = whole(state);
            let is_noticed = |found: &Found| history.judge(steps, steps, found).is_err();
            if history.safe(steps) == steps {
                for (name, &file) in &state.names {
                    let mut changed = found.clone();
                    changed.remove(name);
                    assert!(is_noticed(&changed));
                    lost += 1;
                    let content = state.files[file];
                    if content.len_safe > 0 {
                        changed = found.clone();
                        changed.get_mut(name).unwrap().truncate(content.len_safe as usize - 1);
                        assert!(is_noticed(&changed));
                        short += 1;
                    }
                    if content.len > 0 {
                        changed = found.clone();
                        *changed.get_mut(name).unwrap().last_mut().unwrap() ^= 1;
                        assert!(is_noticed(&changed), "{name:?} of {state:?}");
                        other += 1;
                    }
                }
                for name in Name::all().filter(|name| !found.contains_key(name)) {
                    let mut changed = found.clone();
                    changed.insert(name, Vec::new());
                    assert!(is_noticed(&changed));
                    back += 1;
                }
            }
        }
        assert!([lost, short, other, back].iter().all(|&count| count > 50), "{lost} {short} {other} {back}");
    }

    /// After a rename that is under way the file has the old name or the new one, and the other file's content or its own.
    #[test]
    fn renames_are_whole() {
        let history = History::new(7, STEPS, Promise::Names);
        let mut count = 0;
        for (number, step) in history.steps.iter().enumerate() {
            let Step::Rename(from, to) = step else { continue };
            let (before, after) = (whole(&history.states[number]), whole(&history.states[number + 1]));
            for found in [&before, &after] {
                assert_eq!(history.judge(number, number + 1, found), Ok(()));
            }
            if before[from].is_empty() {
                // Any file that was not synced may be as empty.
                continue;
            }
            let mut both = after.clone();
            both.insert(*from, before[from].clone());
            assert!(history.judge(number, number + 1, &both).is_err());
            let mut neither = before.clone();
            neither.remove(from);
            neither.remove(to);
            assert!(history.judge(number, number + 1, &neither).is_err());
            count += 1;
        }
        assert!(count > 20);
    }
}
