use super::*;
use proptest::prelude::*;

const MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 15);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

fn question(request: Request) -> Question<'static> {
    let host_name = Some("farrier-dns");
    Question { interface: "eth0", client: Client::Ethernet(MAC), transaction: 7, request, host_name }
}

fn lease() -> Lease {
    Lease {
        server: SERVER,
        address: ADDRESS,
        mask: Some([255, 255, 255, 0].into()),
        routers: vec![[192, 0, 2, 1].into()],
        routes: vec![Route::default_through([192, 0, 2, 1].into())],
        mtu: Some(1400),
        name_servers: vec![[192, 0, 2, 53].into(), [192, 0, 2, 54].into()],
        domains: vec!["example.org".to_owned()],
        host_name: Some("horse".to_owned()),
        seconds: Some(3600),
    }
}

/// An answer of a server to [`question`].
fn answer(message: u8) -> Vec<u8> {
    let mut packet = vec![0; HEADER];
    packet[0] = FROM_SERVER;
    packet[7] = 7;
    packet[16..20].copy_from_slice(&ADDRESS.octets());
    packet[28..34].copy_from_slice(&MAC);
    packet[236..].copy_from_slice(&MAGIC);
    packet.push(option::PAD);
    for (code, value) in [
        (option::MESSAGE, &[message][..]),
        (option::SERVER, &[192, 0, 2, 2]),
        (option::MASK, &[255, 255, 255, 0]),
        (option::ROUTERS, &[192, 0, 2, 1]),
        (option::NAME_SERVERS, &[192, 0, 2, 53, 192, 0, 2, 54]),
        (option::HOST_NAME, b"horse"),
        (option::MTU, &[5, 120]),
        (option::DOMAIN, b"example.org"),
        (option::SECONDS, &[0, 0, 14, 16]),
    ] {
        packet.extend([code, value.len() as u8]);
        packet.extend(value);
    }
    packet.push(option::END);
    packet
}

#[test]
fn questions_carry_the_host_name_and_the_client() {
    for (request, kind, held) in [
        (Request::Discover, message::DISCOVER, Ipv4Addr::UNSPECIFIED),
        (Request::Take(lease()), message::REQUEST, Ipv4Addr::UNSPECIFIED),
        (Request::Keep(ADDRESS), message::REQUEST, ADDRESS),
    ] {
        let is_taken = matches!(request, Request::Take(_));
        let packet = question(request).packet();
        let value = |code| value(&packet[HEADER..], code);
        assert!(packet.len() >= LEAST);
        assert_eq!(packet[..4], [FROM_CLIENT, 1, 6, 0]);
        assert_eq!(packet[28..34], MAC);
        assert_eq!(packet[12..16], held.octets());
        assert_eq!(packet[10] == 0x80, held.is_unspecified());
        assert_eq!(value(option::MESSAGE), Some(&[kind][..]));
        assert_eq!(value(option::HOST_NAME), Some(&b"farrier-dns"[..]));
        assert_eq!(value(option::CLIENT), Some(&[1, 0x52, 0x54, 0, 0, 0, 1][..]));
        let taken = [(option::WANTED_ADDRESS, ADDRESS), (option::SERVER, SERVER)];
        for (code, address) in taken {
            assert_eq!(value(code), is_taken.then_some(&address.octets()[..]));
        }
    }
}

/// RFC 4390, section 2.1.
#[test]
fn a_client_on_infiniband_has_an_identifier_and_no_hardware_address() {
    let client = Client::Infiniband(vec![0xff, 1, 2, 3]);
    for request in [Request::Discover, Request::Keep(ADDRESS)] {
        let question = Question { client: client.clone(), ..question(request) };
        let packet = question.packet();
        assert_eq!(packet[..4], [FROM_CLIENT, 32, 0, 0]);
        assert_eq!(packet[10..12], [0x80, 0]);
        assert_eq!(packet[28..44], [0; 16]);
        assert_eq!(value(&packet[HEADER..], option::CLIENT), Some(&[0xff, 1, 2, 3][..]));
    }
    let mut packet = answer(message::OFFER);
    packet[28..34].fill(0);
    let question = Question { client, ..question(Request::Discover) };
    assert_eq!(question.read(&packet), Some(Answer::Given(lease())));
}

#[test]
fn answers_to_other_questions_are_passed_over() {
    let given = Some(Answer::Given(lease()));
    let changed = |at: usize| {
        let mut packet = answer(message::OFFER);
        packet[at] ^= 0x55;
        packet
    };
    let (discover, keep) = (Request::Discover, Request::Keep(ADDRESS));
    for (request, packet, expected) in [
        (&discover, answer(message::OFFER), given.clone()),
        (&Request::Take(lease()), answer(message::ACKNOWLEDGE), given.clone()),
        (&keep, answer(message::ACKNOWLEDGE), given),
        (&keep, answer(message::REFUSE), Some(Answer::Refused { server: SERVER })),
        (&discover, answer(message::ACKNOWLEDGE), None),
        (&keep, answer(message::OFFER), None),
        (&discover, changed(0), None),
        (&discover, changed(7), None),
        (&discover, changed(33), None),
        (&discover, changed(239), None),
        (&discover, answer(message::OFFER)[..HEADER + 6].to_vec(), None),
    ] {
        assert_eq!(question(request.clone()).read(&packet), expected, "{packet:02x?}");
    }
}

#[test]
fn an_unknown_interface_is_an_error() {
    let nowhere = Question { interface: "nosuch0", ..question(Request::Discover) };
    assert!(ask(&nowhere, Duration::from_secs(60)).is_err());
}

proptest! {
    #[test]
    fn no_answer_is_too_odd(options in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut packet = answer(message::OFFER);
        packet.truncate(HEADER);
        packet.extend(options);
        question(Request::Discover).read(&packet);
    }
}
