//! Hints after the start: commands to paste into another terminal.

use std::net::SocketAddr;
use std::path::Path;

use seatkeeper_server::Settings;

/// Returns the hints for a server at `addr`, with settings from the file `config`.
pub(super) fn text(addr: SocketAddr, settings: &Settings, config: Option<&Path>) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "seatkeeper".to_owned());
    let program = quoted(&program);
    let data = data_flags(settings, config);
    let url = format!("{}://{addr}", scheme(settings));
    let server = server_flag(&url);
    format!(
        r#"
Try this in another terminal:
  {program} license create --seats 3 --key TRY-3{server}{data}
  TOKEN=$({program} token --user ann{data})
  curl -s {url}/api/v1/licenses/acquire -H "Authorization: Bearer $TOKEN" \
    -H 'Content-Type: application/json' -d '{{"license_key":"TRY-3","machine_id":"laptop-1"}}'; echo
  {program} license list{server}{data}
  {program} audit verify{data}
The API, with every field: {url}/docs
"#
    )
}

/// Returns the scheme of the server's addresses.
pub(super) fn scheme(settings: &Settings) -> &'static str {
    if settings.server.tls_cert_file.is_some() { "https" } else { "http" }
}

fn server_flag(url: &str) -> String {
    let default = format!("http://{}", Settings::default().server.listen);
    if url == default { String::new() } else { format!(" --server {url}") }
}

/// Returns the flags for the settings file and for the data directory.
fn data_flags(settings: &Settings, config: Option<&Path>) -> String {
    let config = config.map(|file| format!(" --config {}", quoted_path(file))).unwrap_or_default();
    let dir = &settings.ledger.data_dir;
    if *dir == Settings::default().ledger.data_dir {
        return config;
    }
    format!("{config} --data-dir {}", quoted_path(dir))
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// Returns `text` quoted for a shell: bare if safe, otherwise between single quotes.
fn quoted(text: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !text.is_empty() && text.chars().all(bare) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_defaults_needs_no_flags() {
        let settings = Settings::default();
        let text = text(settings.server.listen, &settings, None);
        assert!(!text.contains("--server") && !text.contains("--data-dir"), "{text}");
    }

    #[test]
    fn a_server_elsewhere_is_named_in_every_line_that_needs_it() {
        let mut settings = Settings::default();
        settings.ledger.data_dir = "/tmp/it's here".into();
        let text = text(([127, 0, 0, 1], 9_000).into(), &settings, None);
        assert!(
            text.contains(r"license list --server http://127.0.0.1:9000 --data-dir '/tmp/it'\''s here'"),
            "{text}"
        );
    }

    #[test]
    fn a_server_with_tls_and_a_settings_file_is_named_with_both() {
        let mut settings = Settings::default();
        settings.server.tls_cert_file = Some("cert.pem".into());
        let text = text(settings.server.listen, &settings, Some(Path::new("my settings.toml")));
        let list = "license list --server https://127.0.0.1:8080 --config 'my settings.toml'\n";
        assert!(text.contains(list) && !text.contains("http://"), "{text}");
        assert!(text.contains("token --user ann --config 'my settings.toml')"), "{text}");
    }
}
