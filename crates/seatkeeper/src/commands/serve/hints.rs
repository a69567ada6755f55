//! Hints after the start: commands to paste into another terminal.

use std::net::SocketAddr;
use std::path::Path;

use seatkeeper_server::Settings;

/// Returns the hints for a server at `addr`.
pub(super) fn text(addr: SocketAddr, settings: &Settings) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "seatkeeper".to_owned());
    let program = quoted(&program);
    let data_dir = data_dir_flag(settings);
    let server = server_flag(addr);
    format!(
        r#"
Try this in another terminal:
  {program} license create --seats 3 --key TRY-3{server}{data_dir}
  TOKEN=$({program} token --user ann{data_dir})
  curl -s http://{addr}/api/v1/licenses/acquire -H "Authorization: Bearer $TOKEN" \
    -H 'Content-Type: application/json' -d '{{"license_key":"TRY-3","machine_id":"laptop-1"}}'; echo
  {program} license list{server}{data_dir}
  {program} audit verify{data_dir}
The API, with every field: http://{addr}/docs
"#
    )
}

fn server_flag(addr: SocketAddr) -> String {
    let default = Settings::default().server.listen;
    if addr == default { String::new() } else { format!(" --server http://{addr}") }
}

fn data_dir_flag(settings: &Settings) -> String {
    let dir = &settings.ledger.data_dir;
    let default = Settings::default().ledger.data_dir;
    if *dir == default { String::new() } else { format!(" --data-dir {}", quoted_path(dir)) }
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
        let text = text(settings.server.listen, &settings);
        assert!(!text.contains("--server") && !text.contains("--data-dir"), "{text}");
    }

    #[test]
    fn a_server_elsewhere_is_named_in_every_line_that_needs_it() {
        let mut settings = Settings::default();
        settings.ledger.data_dir = "/tmp/it's here".into();
        let text = text(([127, 0, 0, 1], 9_000).into(), &settings);
        assert!(
            text.contains(r"license list --server http://127.0.0.1:9000 --data-dir '/tmp/it'\''s here'"),
            "{text}"
        );
    }
}
