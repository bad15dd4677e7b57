//! What the agent does for the steps of hardware managers.

use crate::agent::Agent;
use crate::deployment::{bootc, image};
use crate::network::{download, http};
use crate::settings::options::Options;
use crate::steps::erase_certificates;
use farrier_hardware::container::bootc::Order;
use farrier_hardware::manager::StepHost;
use farrier_imaging::shown_url::without_secrets;
use farrier_protocol::error::{CommandError, ErrorKind};
use serde_json::{Value, json};

impl StepHost for Agent {
    fn prepare_image(&self, image_info: &Value, config_drive: Option<&str>) -> Result<Value, CommandError> {
        let deployed = image::deploy(self, image_info, config_drive)?;
        Ok(json!({"result": format!("prepare_image: {}", deployed.text), "report": deployed.report}))
    }

    fn install_bootc(&self, order: &Order<'_>) -> Result<Value, CommandError> {
        Ok(json!({"result": format!("execute_bootc_install: {}", bootc::install(self, order)?)}))
    }

    fn download(&self, url: &str, most: usize, verifies: bool) -> Result<Vec<u8>, CommandError> {
        let failed = |reason: String| CommandError::new(ErrorKind::CommandExecutionError, reason);
        let client = if verifies {
            self.http.clone()
        } else {
            let trusting = Options { insecure: true, ..Options::clone(&self.options) };
            http::client(&trusting).map_err(|error| failed(error.to_string()))?
        };
        let fetched = download::source(self, client).fetch(url, most, &self.ending);
        fetched.map_err(|error| failed(error.to_string()))
    }

    fn missing_devices(&self) -> Vec<String> {
        self.devices.missed().iter().map(ToString::to_string).collect()
    }

    fn guards_special_filesystems(&self) -> bool {
        self.options.guard_special_filesystems
    }

    fn erases_emmc_boot_areas(&self) -> bool {
        self.options.erase_emmc_boot_areas
    }

    fn certify(&self, statement: &Value) -> Result<String, CommandError> {
        erase_certificates::certify(self, statement)
            .map_err(|error| CommandError::new(ErrorKind::CommandExecutionError, error.to_string()))
    }

    fn is_ending(&self) -> bool {
        self.ending.is_cancelled()
    }

    fn post_json(&self, url: &str, body: &Value) -> Result<Value, CommandError> {
        let patience = self.options.image_download_connection_timeout.duration();
        let ask = async {
            let reply = self.http.post(url).timeout(patience).json(body).send().await?.error_for_status()?;
            http::body(reply, http::MOST_RECORD).await
        };
        let failed = |reason: String| {
            CommandError::new(ErrorKind::CommandExecutionError, format!("{}: {reason}", without_secrets(url)))
        };
        let answer = self.runtime.block_on(ask).map_err(|error| failed(error.to_string()))?;
        http::json(&answer)
            .map_err(|error| failed(format!("its answer cannot be used ({error}): check the address")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::post;
    use tokio::net::TcpListener;
    use tokio::runtime::Runtime;

    #[test]
    fn s48_what_no_server_of_json_answers_is_told_without_a_password() {
        http::install_tls_provider();
        let (runtime, directory) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
        let agent = Agent::new(Options::default(), directory.path(), runtime.handle().clone()).unwrap();
        let routes = Router::new()
            .route("/json", post(|| async { r#"{"a": 1}"# }))
            .route("/page", post(|| async { "<html>" }))
            .route("/long", post(|| async { vec![b' '; http::MOST_RECORD + 1] }));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let host = listener.local_addr().unwrap();
        runtime.spawn(axum::serve(listener, routes).into_future());
        let ask = |path| agent.post_json(&format!("http://ann:secret@{host}/{path}"), &json!({}));
        assert_eq!(ask("json").unwrap(), json!({"a": 1}));
        for (path, told) in [("page", "cannot be used"), ("long", "more than 4096 KiB"), ("nowhere", "404")] {
            let error = ask(path).unwrap_err().details;
            assert!(error.contains(told) && !error.contains("secret"), "{error}");
            assert!(error.contains(&format!("http://{host}/{path}: ")), "{error}");
        }
    }
}
