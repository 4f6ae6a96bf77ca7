"""What every test may ask for."""

pytest_plugins = ["tests.postgres", "tests.browser", "tests.world", "tests.programs"]
