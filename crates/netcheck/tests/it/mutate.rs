//! Seeded mutation of packets, for fuzzing without coverage.

use polygraph_netcheck::clock::{NtpPacket, NtpTime};
use polygraph_netcheck::packet::{EchoAnswer, TcpFlags, TcpSegment, echo_request, ipv4_payload};
use polygraph_netcheck::throughput::Direction;
use polygraph_netcheck::throughput::iperf3;
use polygraph_netcheck::throughput::protocol::{ClientMessage, ServerMessage};
use polygraph_netcheck::time_wait::CraftedConnection;
use polygraph_testing::mutation::{Mutator, Random};

/// Takes any bytes for everything that foreign bytes are taken for. Nothing may panic. True if the bytes were good enough
/// to be understood by one of the readers.
pub fn run(data: &[u8]) -> bool {
    let mut deep = NtpPacket::read(data).is_some_and(|packet| packet.answers(NtpTime(7)));
    if let Ok(text) = std::str::from_utf8(data) {
        deep |= ClientMessage::read(text).is_ok() | serde_json::from_str::<ServerMessage>(text).is_ok();
        deep |= iperf3::read(text, Direction::Both).is_ok();
    }
    let inner = ipv4_payload(data).map(|(_, payload)| payload);
    for bytes in [Some(data), inner].into_iter().flatten() {
        for ipv6 in [false, true] {
            deep |= EchoAnswer::read(ipv6, bytes).is_some();
        }
        // A conversation in which every segment comes from the bytes, each with a length before it.
        let mut connection = CraftedConnection::new((40_000, 80), 1, b"GET".to_vec());
        let mut rest = bytes;
        while let Some((length, tail)) = rest.split_first() {
            let (part, tail) = tail.split_at(usize::from(*length).min(tail.len()));
            rest = tail;
            let Some(segment) = TcpSegment::read(part) else { continue };
            deep = true;
            let (answers, _) = connection.receive(&segment);
            let _ = connection.answer_to_probe(&segment);
            assert!(answers.len() <= 2 && connection.unacknowledged().len() <= 2);
        }
    }
    deep
}

fn segment(flags: TcpFlags, sequence: u32, acknowledgement: u32, payload: &[u8]) -> Vec<u8> {
    let segment = TcpSegment {
        source_port: 80,
        destination_port: 40_000,
        sequence,
        acknowledgement,
        flags,
        window: 9,
        max_segment: flags.has(TcpFlags::SYN).then_some(1460),
        payload: payload.to_vec(),
    };
    let address = [10, 0, 0, 1].into();
    let bytes = segment.bytes(address, address);
    [&[bytes.len() as u8][..], &bytes].concat()
}

/// The packets that mutation starts from.
pub fn corpus() -> Vec<Vec<u8>> {
    let ack = TcpFlags::ACK;
    let conversation = [
        segment(TcpFlags::SYN | ack, 100, 2, b""),
        segment(ack, 101, 5, b"HTTP/1.0 200 OK"),
        segment(TcpFlags::FIN | ack, 116, 5, b""),
        segment(ack, 117, 6, b""),
    ];
    let refusal = segment(TcpFlags::RST | ack, 0, 2, b"");
    let mut echo = echo_request(false, 7, 9, b"some data of an echo");
    echo[0] = 0;
    let mut header = vec![0; 20];
    (header[0], header[9]) = (0x45, 1);
    let error = [&[3, 1, 0, 0, 0, 0, 0, 0][..], &header, &echo_request(false, 7, 9, b"data")].concat();
    let time = NtpPacket { from_server: true, originated: NtpTime(7), ..NtpPacket::request(NtpTime(8)) };
    let texts = [
        r#"{"test":{"streams":4,"seconds":30.5,"direction":"both"}}"#,
        r#"{"stream":{"test":77,"index":3}}"#,
        r#"{"result":{"received":[{"bytes":1,"first_s":0.5,"end_s":2,"complete":true}],"sent":[],"cpu":{"processors":2,"busy":0,"busiest":1,"thread":0}}}"#,
        r#"{"end":{"streams":[{"sender":{"sender":true},"receiver":{"bits_per_second":5}}],"sum_received":{"bits_per_second":5}}}"#,
    ];
    let texts = texts.iter().map(|text| text.as_bytes().to_vec());
    let packets = vec![conversation.concat(), refusal, [&header[..], &echo].concat(), error, echo];
    packets.into_iter().chain([time.bytes().to_vec()]).chain(texts).collect()
}

/// Another packet made from those of the corpus.
pub fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    Mutator::default().mutate(corpus, random)
}
