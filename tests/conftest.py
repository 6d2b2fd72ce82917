"""Settings of every test folder: hypothesis measures no time, so a loaded machine fails nothing."""

from hypothesis import HealthCheck, settings

settings.register_profile("swizzle_sim", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("swizzle_sim")
