"""Who may talk to the page: requests that name this host and come from the page itself, and what the page may load.

A page of another site can send requests to 127.0.0.1, and can even rename itself to it (DNS rebinding). It cannot forge
the headers ``Host``, ``Origin`` and ``Sec-Fetch-Site``, which the browser writes.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANY = ("0.0.0.0", "::", "")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server bound to that name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refusal(headers: Mapping[str, str], *, method: str, host: str, port: int) -> str:
    """Why a request is refused; empty if it is not."""
    named = headers.get("Host", "")
    if host not in _ANY and named.lower() not in _names(host, port):
        return f"this server is not called {named[:80]!r}"
    origin = headers.get("Origin")
    if origin is not None and origin.lower() != f"http://{named.lower()}":
        return f"requests of pages of {origin[:80]!r} are not taken"
    if method not in ("GET", "HEAD") and headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        return "requests of other sites are not taken"
    return ""


def policy(script_hashes: Iterable[str]) -> dict[str, str]:
    """Headers of every answer: nothing is loaded from elsewhere, no script runs that is not the page's own."""
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(["'self'", *script_hashes]),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in rules.items()),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }


def _names(host: str, port: int) -> set[str]:
    """What ``Host`` may say."""
    hosts = {host.lower(), *(LOOPBACK if is_loopback(host) else ())}
    bracketed = {f"[{one}]" if ":" in one else one for one in hosts}
    return {f"{one}:{port}" for one in bracketed} | (bracketed if port == 80 else set())
