//! Recognises variables that Kubernetes sets for the Services of a pod's namespace. A Service named
//! `seatkeeper` yields `SEATKEEPER_SERVICE_HOST`, `SEATKEEPER_PORT` and more: the names look like settings,
//! but must be ignored.

/// The schemes of the address in Kubernetes's `…_PORT`.
const ADDRESS_SCHEMES: [&str; 3] = ["tcp://", "udp://", "sctp://"];

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// Returns `true` if Kubernetes gives a Service's variable this name, and the value fits the name:
/// `…_SERVICE_HOST`, `…_SERVICE_PORT[_NAME]`, `…_PORT`, `…_PORT_n_PROTOCOL[_ADDR|_PORT|_PROTO]`.
pub(super) fn is_service_variable(name: &str, value: &str) -> bool {
    let words: Vec<_> = name.split('_').collect();
    match words.as_slice() {
        [.., "SERVICE", "HOST"] => true,
        [.., "PORT", number, protocol] | [.., "PORT", number, protocol, "ADDR" | "PORT" | "PROTO"]
            if number.parse::<u16>().is_ok() && PROTOCOLS.contains(protocol) =>
        {
            true
        }
        words if words.windows(2).any(|pair| pair == ["SERVICE", "PORT"]) => value.parse::<u16>().is_ok(),
        [.., "PORT"] => ADDRESS_SCHEMES.iter().any(|scheme| value.starts_with(scheme)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use seatkeeper_server::SectionReference;

    use super::*;

    /// The variables of a pod in a namespace with the Services `seatkeeper` and `seatkeeper-metrics`.
    const OF_A_POD: [(&str, &str); 12] = [
        ("SEATKEEPER_SERVICE_HOST", "10.0.171.239"),
        ("SEATKEEPER_SERVICE_PORT", "8080"),
        ("SEATKEEPER_SERVICE_PORT_HTTP", "8080"),
        ("SEATKEEPER_SERVICE_PORT_HTTP_ALT", "8081"),
        ("SEATKEEPER_PORT", "tcp://10.0.171.239:8080"),
        ("SEATKEEPER_PORT_8080_TCP", "tcp://10.0.171.239:8080"),
        ("SEATKEEPER_PORT_8080_TCP_PROTO", "tcp"),
        ("SEATKEEPER_PORT_8080_TCP_PORT", "8080"),
        ("SEATKEEPER_PORT_8080_TCP_ADDR", "10.0.171.239"),
        ("SEATKEEPER_METRICS_SERVICE_HOST", "10.0.171.240"),
        ("SEATKEEPER_METRICS_PORT", "udp://10.0.171.240:9090"),
        ("SEATKEEPER_METRICS_PORT_9090_UDP_ADDR", "10.0.171.240"),
    ];

    #[test]
    fn the_variables_of_a_pod_are_known() {
        for (name, value) in OF_A_POD {
            assert!(is_service_variable(name, value), "{name}={value}");
        }
    }

    #[test]
    fn other_variables_are_not_taken_for_them() {
        for (name, value) in [
            ("SEATKEEPER_SERVER_PORT", "9000"),
            ("SEATKEEPER_PORT", "8080"),
            ("SEATKEEPER_SERVER_LISEN", "tcp://10.0.171.239:8080"),
            ("SEATKEEPER_SERVICE", "10.0.171.239"),
            ("SEATKEEPER_PORT_HTTP_TCP", "tcp://10.0.171.239:8080"),
            ("SEATKEEPER_PORT_8080_HTTP_ADDR", "10.0.171.239"),
            ("SEATKEEPER_SERVICE_PORT", "tcp://10.0.171.239:8080"),
        ] {
            assert!(!is_service_variable(name, value), "{name}={value}");
        }
    }

    #[test]
    fn no_setting_is_taken_for_one() {
        for SectionReference { name: section, keys, .. } in SectionReference::all() {
            for (key, _) in keys {
                let name = format!("SEATKEEPER_{section}_{key}").to_uppercase();
                for value in ["8080", "tcp://10.0.171.239:8080"] {
                    assert!(!is_service_variable(&name, value), "{name}");
                }
            }
        }
    }
}
