"""Fault tests: killed processes and servers, many writers, full disks, torn files."""
