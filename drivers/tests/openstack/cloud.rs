//! Keystone and Neutron, for one run of all tests.

use crate::configuration::{self, ADMIN_PASSWORD, REGION};
use farrier_tests::environment;
use farrier_tests::machine::free_port;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// Name and password of who has the roles that a conductor needs.
pub const USER: [&str; 2] = ["stable-hand", "hay and straw"];

/// As [`USER`], with the role of a user alone.
pub const MEMBER: [&str; 2] = ["rider", "carrots"];

/// As [`USER`], with the role of a service alone.
pub const SERVICE: [&str; 2] = ["groom", "brush"];

const START: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(200);

/// The networks, their physical networks and VLANs. Of `twins` there are two.
const NETWORKS: [(&str, &str, u16); 9] = [
    ("provisioning", "rack1", 101),
    ("cleaning", "rack1", 102),
    ("rescuing", "rack1", 103),
    ("inspection", "rack1", 104),
    ("servicing", "rack1", 105),
    ("meadow", "rack1", 150),
    ("valley", "rack2", 250),
    ("twins", "rack1", 160),
    ("twins", "rack1", 161),
];

static CLOUD: OnceCell<Cloud> = OnceCell::const_new();

/// The processes and their addresses. They end with their standard input, and so with this process.
pub struct Cloud {
    /// The URL of Keystone.
    pub keystone: String,
    /// The URL of the Neutron that asks no Keystone.
    pub open_neutron: String,
    neutron: String,
    folder: PathBuf,
    servers: Vec<Child>,
}

/// Somebody with a token.
#[derive(Debug, Clone)]
pub struct Account {
    pub token: String,
    /// Identity of the user.
    pub id: String,
}

impl Cloud {
    /// The one that all tests share. It is started once: where it fails for one test, it would fail for all.
    pub async fn shared() -> &'static Self {
        static IS_TRIED: AtomicBool = AtomicBool::new(false);
        let start = || async {
            assert!(!IS_TRIED.swap(true, Ordering::Relaxed), "it did not start");
            Self::start().await
        };
        CLOUD.get_or_init(start).await
    }

    async fn start() -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let environment = environment::path("FARRIER_OPENSTACK");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openstack");
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(folder.join("state")).unwrap();
        let [keystone, neutron, open] = [(); 3].map(|()| free_port().unwrap());
        let url = format!("http://127.0.0.1:{keystone}/v3");
        fs::write(folder.join("keystone.conf"), configuration::keystone(&folder)).unwrap();
        fs::write(folder.join("neutron.conf"), configuration::neutron(&folder, &environment, &url)).unwrap();
        let [settings, policy] = configuration::open_neutron(&folder);
        fs::write(folder.join("open-neutron.conf"), settings).unwrap();
        fs::write(folder.join("policy.yaml"), policy).unwrap();
        let mut cloud = Self {
            keystone: url,
            neutron: format!("http://127.0.0.1:{neutron}"),
            open_neutron: format!("http://127.0.0.1:{open}"),
            folder,
            servers: Vec::new(),
        };
        cloud.prepare(&environment);
        // One after the other: each Neutron writes to the same SQLite file while it starts.
        cloud.serve(&environment, "keystone.wsgi.api", keystone, &[]).await;
        cloud.serve(&environment, "neutron.wsgi.api", neutron, &["neutron.conf"]).await;
        let settings = ["neutron.conf", "open-neutron.conf"];
        cloud.serve(&environment, "neutron.wsgi.api", open, &settings).await;
        cloud.furnish().await;
        cloud
    }

    /// Makes databases and keys, and who may do everything.
    fn prepare(&self, environment: &Path) {
        self.run(self.program(environment, "python", "prepare").arg(script("prepare.py")).arg(&self.folder));
        let bootstrap =
            ["bootstrap", "--bootstrap-password", ADMIN_PASSWORD, "--bootstrap-region-id", REGION];
        let bootstrap = [&bootstrap[..], &["--bootstrap-public-url", &self.keystone]].concat();
        for arguments in [&["db_sync"][..], &bootstrap] {
            let mut manage = self.program(environment, "keystone-manage", "keystone-manage");
            self.run(manage.arg("--config-file").arg(self.folder.join("keystone.conf")).args(arguments));
        }
    }

    async fn serve(&mut self, environment: &Path, module: &str, port: u16, files: &[&str]) {
        let mut server = self.program(environment, "python", &format!("{module}-{port}"));
        server.arg(script("serve.py")).args([module, &port.to_string()]).stdin(Stdio::piped());
        server.env("OS_KEYSTONE_CONFIG_FILES", self.folder.join("keystone.conf"));
        for file in files {
            server.arg("--config-file").arg(self.folder.join(file));
        }
        self.servers.push(server.spawn().unwrap());
        self.wait_for(&format!("http://127.0.0.1:{port}")).await;
    }

    /// A program of the environment, whose output goes to a log.
    fn program(&self, environment: &Path, name: &str, log: &str) -> Command {
        let log = self.folder.join(format!("{log}.log"));
        let log = File::options().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(environment.join("bin").join(name));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command
    }

    fn run(&self, command: &mut Command) {
        let status = command.status().unwrap();
        assert!(status.success(), "{command:?} ended with {status}; see {}", self.folder.display());
    }

    async fn wait_for(&mut self, url: &str) {
        let start = Instant::now();
        while Client::new().get(url).send().await.is_err() {
            let ended = self.servers.iter_mut().find_map(|server| server.try_wait().unwrap());
            assert_eq!(ended, None, "a server ended; see {}", self.folder.display());
            assert!(start.elapsed() < START, "{url} is silent; see {}", self.folder.display());
            tokio::time::sleep(POLL).await;
        }
    }

    /// Creates users, the endpoint of Neutron, and networks.
    async fn furnish(&self) {
        let admin = self.login(["admin", ADMIN_PASSWORD], "admin").await;
        let roles = self.identity(&admin, Method::GET, "roles", &Value::Null).await;
        let role = |name: &str| {
            let found = roles["roles"].as_array().unwrap().iter().find(|role| role["name"] == name);
            found.unwrap()["id"].as_str().unwrap().to_owned()
        };
        let project = json!({"project": {"name": "service", "domain_id": "default"}});
        let project = created(&self.identity(&admin, Method::POST, "projects", &project).await, "project");
        for ([name, password], has) in
            [(USER, &["admin", "service"][..]), (MEMBER, &["member"]), (SERVICE, &["service"])]
        {
            let user = json!({"user": {"name": name, "domain_id": "default", "password": password}});
            let user = created(&self.identity(&admin, Method::POST, "users", &user).await, "user");
            for name in has {
                let path = format!("projects/{project}/users/{user}/roles/{}", role(name));
                self.identity(&admin, Method::PUT, &path, &Value::Null).await;
            }
        }
        let service = json!({"service": {"type": "network", "name": "neutron"}});
        let service = created(&self.identity(&admin, Method::POST, "services", &service).await, "service");
        let endpoint = json!({"endpoint": {"service_id": service, "interface": "public", "region_id": REGION,
            "url": self.neutron}});
        self.identity(&admin, Method::POST, "endpoints", &endpoint).await;
        for (number, (name, physical, vlan)) in NETWORKS.iter().enumerate() {
            let network = json!({"network": {"name": name, "shared": true, "provider:network_type": "vlan",
                "provider:physical_network": physical, "provider:segmentation_id": vlan}});
            let network =
                created(&self.network(&admin, Method::POST, "networks", &network).await.1, "network");
            let subnet = json!({"subnet": {"network_id": network, "ip_version": 4,
                "cidr": format!("10.77.{number}.0/24")}});
            self.network(&admin, Method::POST, "subnets", &subnet).await;
        }
    }

    /// Asks Keystone for a token.
    pub async fn login(&self, [name, password]: [&str; 2], project: &str) -> Account {
        let domain = json!({"id": "default"});
        let user = json!({"name": name, "domain": domain, "password": password});
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": {"name": project, "domain": domain}},
        }});
        let url = format!("{}/auth/tokens", self.keystone);
        let reply = Client::new().post(url).json(&body).send().await.unwrap().error_for_status().unwrap();
        let token = reply.headers()["x-subject-token"].to_str().unwrap().to_owned();
        let body: Value = reply.json().await.unwrap();
        Account { token, id: body["token"]["user"]["id"].as_str().unwrap().to_owned() }
    }

    /// Asks Keystone for something that it does.
    pub async fn identity(&self, who: &Account, method: Method, path: &str, body: &Value) -> Value {
        let (status, reply) = ask(who, method, &format!("{}/{path}", self.keystone), body).await;
        assert!(status.is_success(), "{path}: {status} {reply}");
        reply
    }

    /// Asks Neutron for something.
    pub async fn network(
        &self,
        who: &Account,
        method: Method,
        path: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        ask(who, method, &format!("{}/v2.0/{path}", self.neutron), body).await
    }

    /// What the switch was told.
    pub fn commands(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in fs::read_dir(&self.folder).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().starts_with("neutron.wsgi.api-") {
                let text = fs::read_to_string(path).unwrap();
                let commands = text.lines().filter(|line| line.contains("netmiko_devices.fake "));
                lines.extend(commands.filter_map(|line| Some(line.rsplit_once("] ")?.1.to_owned())));
            }
        }
        lines
    }
}

async fn ask(who: &Account, method: Method, url: &str, body: &Value) -> (StatusCode, Value) {
    let mut request = Client::new().request(method, url).header("x-auth-token", &who.token);
    if !body.is_null() {
        request = request.json(body);
    }
    let reply = request.send().await.unwrap();
    let status = reply.status();
    (status, serde_json::from_str(&reply.text().await.unwrap()).unwrap_or_default())
}

/// The identity of what was created.
pub fn created(reply: &Value, kind: &str) -> String {
    reply[kind]["id"].as_str().unwrap_or_else(|| panic!("no {kind}: {reply}")).to_owned()
}

/// A script beside the list of packages.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/openstack").join(name)
}
