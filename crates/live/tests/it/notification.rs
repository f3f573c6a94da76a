//! Notifications keep their values on the way.

use std::net::{Ipv4Addr, SocketAddrV4};

use polygraph_live::notification::{ForwardedNotification, Micros, Notification};
use polygraph_stats::Side;
use proptest::prelude::*;

fn time() -> impl Strategy<Value = Micros> {
    (0..i64::from(i32::MAX) * 1_000_000).prop_map(Micros)
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        0.0..1.0,
        0.0..1e9,
        1e-200..1e-190,
        1e290..1e299,
        (0..60).prop_map(|e| 2f64.powi(e))
    ]
}

prop_compose! {
    fn notification()(
        label in "[a-z0-9é ]{0,20}",
        times in [time(), time()],
        response_time in proptest::option::of(time()),
        rates in [value(), value(), value()],
        ratios in [proptest::option::of(value()), proptest::option::of(value()), proptest::option::of(value())],
        counts in [any::<i64>(), any::<i64>(), any::<i64>()],
        client: bool,
    ) -> Notification {
        Notification {
            label,
            start: times[0],
            sent: times[1],
            response_time,
            request_rate: rates[0],
            reply_rate: rates[1],
            bandwidth: rates[2],
            hit_ratio: ratios[0],
            connection_use: ratios[1],
            error_ratio: ratios[2],
            transactions: counts[0],
            errors: counts[1],
            open_connections: counts[2],
            side: if client { Side::Client } else { Side::Server },
        }
    }
}

/// A mantissa has 31 bits.
fn close(sent: f64, found: f64) -> bool {
    (sent - found).abs() <= sent.abs() * 2f64.powi(-30)
}

fn all_close(sent: [Option<f64>; 3], found: [Option<f64>; 3]) -> bool {
    sent.iter().zip(found).all(|(sent, found)| match (sent, found) {
        (Some(sent), Some(found)) => close(*sent, found),
        (None, None) => true,
        _ => false,
    })
}

proptest! {
    #[test]
    fn notifications_survive(sent in notification(), received in time(), ip: u32, port: u16, copies: u32) {
        let bytes = sent.encode();
        let found = Notification::decode(&bytes).unwrap();
        prop_assert!(sent.label.starts_with(&found.label));
        prop_assert!(found.label.len() == sent.label.len() || found.label.len() >= 14);
        let rates = |one: &Notification| [one.request_rate, one.reply_rate, one.bandwidth].map(Some);
        prop_assert!(all_close(rates(&sent), rates(&found)), "{found:?}");
        let ratios = |one: &Notification| [one.hit_ratio, one.connection_use, one.error_ratio];
        prop_assert!(all_close(ratios(&sent), ratios(&found)), "{found:?}");
        let exact = Notification {
            label: sent.label.clone(),
            request_rate: sent.request_rate,
            reply_rate: sent.reply_rate,
            bandwidth: sent.bandwidth,
            hit_ratio: sent.hit_ratio,
            connection_use: sent.connection_use,
            error_ratio: sent.error_ratio,
            ..found.clone()
        };
        prop_assert_eq!(&exact, &sent);
        // A dispatcher keeps the bytes.
        let sender = SocketAddrV4::new(Ipv4Addr::from(ip), port);
        let forwarded = ForwardedNotification::decode(&ForwardedNotification::encode(&bytes, received, sender, copies));
        prop_assert_eq!(forwarded.unwrap(), ForwardedNotification { notification: found, received, sender, copies });
    }
}
