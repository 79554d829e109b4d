//! A browser without a window, driven over the WebDriver protocol: a few requests of plain HTTP to `chromedriver` or
//! `geckodriver`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything in the page may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// The folder of Chromium's profile; Firefox makes its own.
    profile: Option<TempDir>,
}

/// Chromium.
pub(crate) fn browser() -> Browser {
    let (driver, binary) = testkit::need::chromium();
    Browser::chromium(&driver, &binary)
}

pub(crate) fn firefox() -> Browser {
    let (driver, binary) = testkit::need::firefox();
    Browser::firefox(&driver, &binary)
}

impl Browser {
    fn chromium(driver: &Path, binary: &Path) -> Self {
        let profile = TempDir::new().unwrap();
        let mut driver = Command::new(driver).arg("--port=0").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines
            .map_while(Result::ok)
            .find_map(|line| line.split("successfully on port ").nth(1)?.trim_end_matches('.').parse().ok())
            .expect("chromedriver says which port it listens on");
        let folder = format!("--user-data-dir={}", profile.path().display());
        let plain =
            ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"];
        let arguments: Vec<&str> = plain.into_iter().chain([folder.as_str()]).collect();
        let options = json!({ "binary": binary, "args": arguments });
        let logs = json!({ "browser": "ALL", "performance": "ALL" });
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logs });
        Self { driver, port, session: String::new(), profile: Some(profile) }.opened(&wanted)
    }

    fn firefox(driver: &Path, binary: &Path) -> Self {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        // The console of the browser is read in its own context, which takes this permission.
        let arguments = ["--allow-system-access", "--log", "fatal", "--port", &port.to_string()];
        let driver = Command::new(driver).args(arguments).stdout(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < PATIENCE, "geckodriver never listened on port {port}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let options = json!({ "binary": binary, "args": ["-headless", "-width", "1280", "-height", "900"] });
        let wanted = json!({ "browserName": "firefox", "moz:firefoxOptions": options });
        Self { driver, port, session: String::new(), profile: None }.opened(&wanted)
    }

    /// With a session of its own.
    fn opened(self, wanted: &Value) -> Self {
        let mut browser = self;
        let session = browser.request("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        browser
    }

    /// The value that the driver answers with; anything but success fails the test.
    fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert!(answer["value"]["error"].is_null(), "{method} {path}: {}", answer["value"]);
        answer["value"].clone()
    }

    fn post(&self, what: &str, body: &Value) -> Value {
        self.request("POST", &format!("/session/{}/{what}", self.session), body)
    }

    /// Opens a file and waits until everything in it is drawn.
    pub(crate) fn open(&self, page: &Path) {
        self.open_address(&format!("file://{}", page.display()));
    }

    /// The same of an address.
    pub(crate) fn open_address(&self, address: &str) {
        self.post("url", &json!({ "url": address }));
        self.wait("[...document.querySelectorAll('.view canvas')].every((one) => one.dataset.ready)");
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&self, expression: &str) -> Value {
        self.post("execute/sync", &json!({ "script": format!("return ({expression});"), "args": [] }))
    }

    /// What a script hands to its last argument, a function, as soon as it has it.
    pub(crate) fn answer(&self, script: &str) -> Value {
        self.post("timeouts", &json!({ "script": PATIENCE.as_millis() as u64 }));
        self.post("execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Waits until an expression is true.
    pub(crate) fn wait(&self, expression: &str) {
        let started = Instant::now();
        while self.value(expression) != json!(true) {
            assert!(started.elapsed() < PATIENCE, "never true: {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A command of the browser's own protocol.
    pub(crate) fn command(&self, command: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// Shows the page as a device with these features would.
    pub(crate) fn emulate(&self, media: &str, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.command("Emulation.setEmulatedMedia", &json!({ "media": media, "features": features }));
    }

    /// Shows the page this wide.
    pub(crate) fn resize(&self, width: u32) {
        let size = json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.command("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Presses the mouse at one place of the window and lets go at another.
    pub(crate) fn drag(&self, from: [i64; 2], to: [i64; 2]) {
        let to_place = |[x, y]: [i64; 2]| json!({ "type": "pointerMove", "duration": 20, "x": x, "y": y });
        let middle = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
        let (down, up) = (json!({ "type": "pointerDown", "button": 0 }), json!({ "type": "pointerUp", "button": 0 }));
        let steps = json!([to_place(from), down, to_place(middle), to_place(to), up]);
        let mouse = json!({ "type": "pointer", "id": "mouse", "actions": steps });
        self.post("actions", &json!({ "actions": [mouse] }));
    }

    /// What the page complained of since the last time: errors, and what its policy forbids.
    pub(crate) fn complaints(&self) -> Vec<String> {
        if self.profile.is_none() {
            self.post("moz/context", &json!({ "context": "chrome" }));
            let own = "Services.console.getMessageArray().map(String).filter((one) => one.includes('file://'))";
            let found = self.value(own);
            self.post("moz/context", &json!({ "context": "content" }));
            return found.as_array().unwrap().iter().map(Value::to_string).collect();
        }
        let entries = self.post("se/log", &json!({ "type": "browser" }));
        entries.as_array().unwrap().iter().map(Value::to_string).collect()
    }

    /// Addresses that pages from files asked for since the last time; the browser's own start page asks for parts of itself.
    pub(crate) fn requests(&self) -> Vec<String> {
        let entries = self.post("se/log", &json!({ "type": "performance" }));
        let address = |entry: &Value| {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let message = &message["message"];
            let is_of_file = message["params"]["documentURL"].as_str().is_some_and(|url| url.starts_with("file://"));
            (message["method"] == "Network.requestWillBeSent" && is_of_file)
                .then(|| message["params"]["request"]["url"].as_str().unwrap_or_default().to_owned())
        };
        entries.as_array().unwrap().iter().filter_map(address).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A failing test ends here too, and must not fail twice.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let (session, port) = (&self.session, self.port);
            let host = format!("Host: 127.0.0.1:{port}\r\nContent-Length: 0");
            let _ = write!(stream, "DELETE /session/{session} HTTP/1.1\r\n{host}\r\n\r\n");
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let _ = stream.read(&mut [0; 512]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
