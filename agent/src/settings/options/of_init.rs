//! What PID 1 needs to know of the options.

use super::{NameList, Options};
use farrier_init::Settings;
use farrier_linux::kernel_line::Parameters;

/// The settings of PID 1. The agent reports invalid options.
pub fn of_init(parameters: &Parameters) -> Settings {
    let (options, _) = Options::load(parameters, &Default::default());
    let names = |list: Option<NameList>| list.map(|list| list.0).unwrap_or_default();
    Settings {
        debug: options.debug,
        boot_interface: options.bootif,
        bond: options.net_bond,
        vlans: names(options.net_vlans),
        name_servers: names(options.net_dns),
        routes: names(options.net_routes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::kernel_line;

    #[test]
    fn every_parameter_of_the_network_reaches_pid_1() {
        let line = "ipa-debug=1 BOOTIF=01-52-54-00-ab-cd-ef farrier-net-bond=b farrier-net-vlans=v,w \
                    farrier-net-dns=192.0.2.53 farrier-net-routes=r";
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let expected = Settings {
            debug: true,
            boot_interface: Some("01-52-54-00-ab-cd-ef".into()),
            bond: Some("b".into()),
            vlans: list(&["v", "w"]),
            name_servers: list(&["192.0.2.53"]),
            routes: list(&["r"]),
        };
        assert_eq!(of_init(&kernel_line::parse(line)), expected);
        assert_eq!(of_init(&Default::default()), Settings::default());
    }
}
