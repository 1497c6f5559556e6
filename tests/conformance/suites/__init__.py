"""The conformance suites: what every implementation of a plug-in family must do, as classes to inherit.

    class TestStore(StoreConformance):
        ...                                  # a fixture `scene` over the implementation

Each suite says in its docstring which fixtures it takes. They need pytest, so only tests import them.
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{suite}"
        for suite in (
            "lease",
            "scene",
            "store_backfill",
            "store_calendars",
            "store_changes",
            "store_executions",
            "store_fence",
            "store_firing",
            "store_loading",
            "store_overlap",
            "store_registry",
            "store_secrets",
            "store_upkeep",
            "store_work",
        )
    )
)
