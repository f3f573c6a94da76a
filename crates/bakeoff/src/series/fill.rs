//! Filling a cache: cachable replies as fast as it takes them, none asked for twice, until nothing more stays.
//!
//! A cache is full when it takes no more room although cachable traffic goes on. Of a device that was started
//! here the room is seen, memory and disk: when it was sent its size and the last part of that made it grow by less
//! than [`STILL`] of the part, it is full. It is full as well if it has grown by its size: some throw away later
//! than they are filled here. Of others the room is not seen; they are sent twice their size.

use std::time::{Duration, Instant};

use polygraph_report::text;

use super::{Series, SeriesError, SeriesNote};
use crate::journal::{Fullness, JournalEvent};
use crate::plan::Contestant;

/// Mean size of replies in bytes: exp:13KB.
const MEAN_REPLY: u64 = 13 << 10;
/// Parts of the device's size that are sent at a time.
const PARTS: u64 = 4;
/// The least part in bytes: less growth than that says nothing.
const LEAST_PART: u64 = 4 << 20;
/// Growth that does not count, as a share of what was added.
const STILL: f64 = 0.1;
/// A device that still grows after so many times its size, and so many parts, is not waited for.
const MOST: u64 = 4;
/// After so long a device has thrown away what it must: some do that a few times a second, beside their work.
const TIDY: Duration = Duration::from_secs(1);
/// Robots that fill, each with one request at a time.
const ROBOTS: u32 = 8;
/// Seconds that one part may take at a rate that is still worth calling so, in bytes per second.
const LEAST_SPEED: f64 = 100e3;

/// Why a cache is taken for full, by its growth over the last part in percent of what was added.
pub fn grown(share: f64) -> String {
    if share < 100.0 * STILL {
        // Some shrink a little when they tidy up.
        format!("the last part made it grow by {:.1} % of what was added", share.max(0.0))
    } else {
        "it has grown by its size".to_owned()
    }
}

impl Series<'_> {
    /// Fills the device at hand. False: it was asked to stop.
    pub(super) fn fill(&mut self, device: &Contestant) -> Result<bool, SeriesError> {
        let begin = Instant::now();
        let Some(session) = &self.session else { return Ok(false) };
        let (size, seen) = (session.size(), session.occupied());
        let part = (size / PARTS).max(LEAST_PART);
        let (mut bytes, mut last, mut growth, mut parts) = (0, 0, None, 0);
        let mut occupied = seen;
        let limit = self.plan.rules.fill_limit_s;
        let fullness = loop {
            let full = match (growth, occupied.zip(seen)) {
                (Some(growth), Some((now, first))) => {
                    bytes >= size && growth < (last as f64 * STILL) as i64
                        || bytes >= 2 * size && now >= first + size
                }
                _ => seen.is_none() && bytes >= 2 * size,
            };
            if full {
                break if seen.is_some() { Fullness::Observed } else { Fullness::Sent };
            }
            if begin.elapsed().as_secs_f64() > limit || (bytes >= MOST * size && parts >= MOST) {
                break Fullness::Growing;
            }
            let Some(sent) = self.fill_part(device, part, bytes, size)? else { return Ok(false) };
            (bytes, last, parts) = (bytes + sent, sent, parts + 1);
            if seen.is_some() && self.stop.pause(TIDY) {
                return Ok(false);
            }
            let now = self.session.as_ref().and_then(|session| session.occupied());
            growth = now.zip(occupied).map(|(now, before)| now as i64 - before as i64);
            occupied = now;
        };
        let seconds = begin.elapsed().as_secs_f64();
        let share = growth.map(|growth| 100.0 * growth as f64 / last.max(1) as f64);
        self.notify(format!(
            "{}: filled with {} in {}{}",
            device.name,
            text::bytes(Some(bytes as f64)),
            text::duration(seconds.round()),
            match (fullness, share) {
                (Fullness::Observed, Some(share)) => format!("; {}: it is full", grown(share)),
                (Fullness::Growing, _) => "; it still grows: it is not known to be full".to_owned(),
                _ => ", twice its size".to_owned(),
            }
        ));
        let name = device.name.clone();
        self.note(JournalEvent::Filled { device: name, bytes, seconds, fullness, growth, last })?;
        if let Some(session) = &mut self.session {
            session.full = true;
        }
        Ok(true)
    }

    /// Sends one part; how many bytes of replies came.
    fn fill_part(
        &mut self,
        device: &Contestant,
        part: u64,
        before: u64,
        size: u64,
    ) -> Result<Option<u64>, SeriesError> {
        let Some(session) = &self.session else { return Ok(None) };
        let count = part.div_ceil(MEAN_REPLY);
        let mut words = [session.route(), session.servers()].concat();
        let options = format!(
            "--req_rate none --robots {ROBOTS} --dhr 0p --rep_cachable 100p --rep_sz exp:13KB --xact_think none --goal {count} \
             --cool_phase none"
        );
        words.extend(options.split_whitespace().map(str::to_owned));
        let lead = format!(
            "{}: filling, {:.0} % of its size sent",
            device.name,
            100.0 * before as f64 / size.max(1) as f64
        );
        (self.stage.notify)(SeriesNote::Progress(lead.clone()));
        let place = self.directory.join(&device.name).join("fill");
        let seconds = part as f64 / LEAST_SPEED;
        let Some(ran) = self.child("fill", &place, words, seconds, &lead)? else { return Ok(None) };
        let facts =
            ran.facts.map_err(|problem| SeriesError::Step(format!("{}: filling: {problem}", device.name)))?;
        let total = facts.client.as_ref().and_then(|side| side.total.as_ref());
        let (sent, failed) = total
            .map_or((0.0, 1.0), |scope| (scope.all.size.sum(), scope.block.error_ratio().unwrap_or(1.0)));
        // The verdict of a filling means nothing: it is as fast as it can be. But something must have come.
        if failed > 0.5 || sent <= 0.0 {
            let problem = format!(
                "{:.0} % of the transactions that fill it failed; see {}",
                failed * 100.0,
                ran.directory.display()
            );
            return Err(SeriesError::Device { name: device.name.clone(), problem });
        }
        Ok(Some(sent as u64))
    }
}
