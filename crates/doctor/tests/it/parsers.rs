//! Whatever the kernel or a tool prints, readers take it: they leave out what they do not understand.

use proptest::prelude::*;

use crate::parse;
use crate::readers::all;

const SAMPLES: [&str; 10] = [
    "TCP: inuse 1 orphan 0 tw 2495 alloc 1 mem 184\nMemTotal: 24684092 kB\n",
    "Tcp: OutSegs RetransSegs\nTcp: 5000 7\n",
    "0000000f ffffffff 00000000\n0000133e 00000001\n",
    "   0: 0100007F:8235 0100007F:A45A 06 00000000:00000000 03:00000B72\n",
    "cpu  171217 5269 16889 75254 677 0 201 1518 0 0\n",
    "123 (a) b) S 1 123 123 0 -1 4194560 1 2 3 4 18446744073709551615 9 0 0 20 0\n",
    "0-3,8,18446744073709551615-18446744073709551615,5-2",
    "Local:\n |-- 10.0.0.0\n   /16 host LOCAL\n |-- 300.1.1.1\n   /999 host LOCAL\n",
    "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 40ms\nqdisc noqueue 0: dev lo root\n/dev/x /data ext4 rw 0 0\n",
    "fd000007000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000001 00000000 80000001       lo\n",
];

proptest! {
    #[test]
    fn any_text_is_taken(text in "\\PC*") {
        all(&text);
    }

    #[test]
    fn damaged_text_is_taken(sample in 0..SAMPLES.len(), cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8)) {
        let mut bytes = SAMPLES[sample].as_bytes().to_vec();
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            match byte % 3 {
                0 => drop(bytes.remove(at)),
                1 => bytes[at] = byte,
                _ => bytes.insert(at, byte),
            }
            if bytes.is_empty() {
                bytes.push(b' ');
            }
        }
        all(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn formats_are_read() {
    assert_eq!(parse::list_length("0-3,8"), Some(5));
    assert_eq!(parse::list_length("3-0"), None);
    assert_eq!(parse::list_length("0-18446744073709551615"), None);
    assert_eq!(parse::ports_in_range("1-65535", (10, 19)), 10);
    assert_eq!(parse::chosen("always [madvise] never").as_deref(), Some("madvise"));
    assert_eq!(parse::process_ticks(SAMPLES[5]), Some(("a) b".to_owned(), u64::MAX)));
    let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /data tmpfs rw 0 0\nhost:/x /data/runs nfs4 rw 0 0\nx /data/ru ext2 rw 0 0\n";
    for (directory, kind) in [("/data/runs/a", "nfs4"), ("/data/run", "tmpfs"), ("/database", "ext4")] {
        assert_eq!(parse::file_system(mounts, directory).as_deref(), Some(kind), "{directory}");
    }
    let saved =
        "# Generated\n*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\n-A INPUT -p tcp -j DROP\nCOMMIT\n";
    assert_eq!(parse::saved_rules(saved), 2);
    let listed = "table ip filter {\n\tchain INPUT {\n\t\ttype filter hook input priority 0;\n\t\tpolicy accept;\n\t\ttcp dport 80 drop\n\t}\n}\n";
    assert_eq!(parse::listed_rules(listed), 1);
    assert_eq!(parse::shaping(SAMPLES[8]), ["netem on eth0"]);
}
