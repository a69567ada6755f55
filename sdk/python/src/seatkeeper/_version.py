"""The version of this package."""

VERSION = "0.1.0"
#: The name of this package in the audit log of a server.
SDK = f"python/{VERSION}"
