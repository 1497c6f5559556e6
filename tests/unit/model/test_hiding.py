"""What must not be said is known for as long as something that runs here has it."""

from foliot.model.redaction import ActiveSecrets, current_mask, hiding


def test_nothing_is_hidden_where_nothing_is_secret() -> None:
    assert ActiveSecrets().mask is None
    assert current_mask() is None


def test_a_text_is_hidden_until_the_last_that_has_it_has_ended() -> None:
    running = ActiveSecrets()
    running.add(["hunter2"])
    running.add(["hunter2"])
    running.remove(["hunter2"])
    assert running.mask is not None
    assert running.mask("it is hunter2") == "it is ***"
    running.remove(["hunter2"])
    assert running.mask is None


def test_of_two_secrets_that_begin_alike_no_end_is_left() -> None:
    running = ActiveSecrets()
    running.add(["hunt"])
    running.add(["hunter2"])
    assert running.mask is not None
    assert running.mask("hunter2 hunt") == "*** ***"


def test_the_context_and_what_runs_are_hidden_together() -> None:
    running = ActiveSecrets()
    running.add(["mine", "theirs"])
    token = hiding.set(lambda text: text.replace("mine", "***").replace("past", "***"))
    try:
        mask = current_mask(running)
        assert mask is not None
        assert mask("mine theirs past") == "*** *** ***"
    finally:
        hiding.reset(token)
