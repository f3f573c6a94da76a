//! Fills a cache with cachable replies, as fast as it accepts them and none requested twice, until it no longer grows.
//!
//! A cache is full when it no longer grows although cachable traffic continues. The space of a device that was started
//! here, in memory and on disk, can be observed: it is full when it has received its size, and the last part made it
//! grow by less than [`STILL`] of this part. It is also full when it has grown by its size, because some devices evict
//! objects later than they receive them. The space of other devices cannot be observed; they receive twice their size.

use std::time::{Duration, Instant};

use polygraph_report::text;

use super::{Series, SeriesError, SeriesNote, fleet_load};
use crate::journal::{Fullness, JournalEvent};
use crate::plan::Contestant;

/// Mean size of replies in bytes: exp:13KB.
const MEAN_REPLY: u64 = 13 << 10;
/// Number of parts into which the device's size is divided.
const PARTS: u64 = 4;
/// Smallest part in bytes; the growth during a smaller part proves nothing.
const LEAST_PART: u64 = 4 << 20;
/// Growth below this share of the added bytes does not count.
const STILL: f64 = 0.1;
/// Filling ends after this many times the size of the device and this many parts, even if it still grows.
const MOST: u64 = 4;
/// Time after which a device has evicted what it must: some devices evict a few times a second, in the background.
const TIDY: Duration = Duration::from_secs(1);
/// Number of robots that fill the cache, each with one request at a time.
const ROBOTS: u32 = 8;
/// Lowest acceptable speed of filling, in bytes per second, which limits the time for a part.
const LEAST_SPEED: f64 = 100e3;

/// Why a cache counts as full, given its growth during the last part in percent of the bytes added.
pub fn grown(share: f64) -> String {
    if share < 100.0 * STILL {
        // Some caches shrink a little when they evict.
        format!("with the last part it grew by {:.1} % of the bytes added", share.max(0.0))
    } else {
        "it has grown by its size".to_owned()
    }
}

impl Series<'_> {
    /// Fills the current device. Returns false if the user stopped the series.
    pub(super) fn fill(&mut self, device: &Contestant) -> Result<bool, SeriesError> {
        let begin = Instant::now();
        let Some(session) = &self.session else { return Ok(false) };
        let (size, seen) = (session.size(), session.occupied());
        let part = (size / PARTS).max(LEAST_PART);
        let (mut bytes, mut last, mut growth, mut parts) = (0, 0, None, 0);
        let mut occupied = seen;
        // Each client of a fleet sends as many requests as the workload says. Their number is known after the first part.
        let mut clients = 1.0;
        let is_fleet = self.plan.workload.fleet.is_some();
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
            let asked = if is_fleet && parts == 0 { LEAST_PART } else { (part as f64 / clients) as u64 };
            let Some(sent) = self.fill_part(device, asked, bytes, size)? else { return Ok(false) };
            if is_fleet {
                clients = (sent as f64 / asked.max(1) as f64).max(1.0);
            }
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
                (Fullness::Growing, _) => "; it is still growing, so it is not known to be full".to_owned(),
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

    /// Sends one part, and returns the number of bytes of replies.
    fn fill_part(
        &mut self,
        device: &Contestant,
        part: u64,
        before: u64,
        size: u64,
    ) -> Result<Option<u64>, SeriesError> {
        let Some(session) = &self.session else { return Ok(None) };
        let count = part.div_ceil(MEAN_REPLY);
        let mut words = session.route();
        let options = format!(
            "--req_rate none --robots {ROBOTS} --dhr 0p --rep_cachable 100p --rep_sz exp:13KB --xact_think none --goal {count} \
             --cool_phase none"
        );
        match &self.plan.workload.fleet {
            Some(bench) => {
                words.extend(self.fleet_words(bench, &fleet_load::fill(bench, count), "fill")?);
            }
            None => {
                words.extend(session.servers());
                words.extend(options.split_whitespace().map(str::to_owned));
            }
        }
        let lead = format!(
            "{}: filling, {:.0} % of its size sent",
            device.name,
            100.0 * before as f64 / size.max(1) as f64
        );
        (self.stage.notify)(SeriesNote::Progress(lead.clone()));
        let place = self.directory.join(&device.name).join("fill");
        let seconds = part as f64 / LEAST_SPEED;
        let Some(ran) = self.child("fill", &place, words, seconds, &lead)? else { return Ok(None) };
        self.describe_device(&ran)?;
        let facts =
            ran.facts.map_err(|problem| SeriesError::Step(format!("{}: filling: {problem}", device.name)))?;
        let total = facts.client.as_ref().and_then(|side| side.total.as_ref());
        let (sent, failed) =
            total.map_or((0.0, 1.0), |scope| (scope.sizes().sum(), scope.block.error_ratio().unwrap_or(1.0)));
        // The verdict of a fill is irrelevant, because the load has no planned rate; but some replies must have
        // arrived.
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
