"""`foliot sign-in`: a link that signs a browser in as the operator."""

from foliot.cli.support.instants import local
from foliot.cli.support.options import ChangeOptions, Connection, grouped
from foliot.cli.support.output import Output, OutputOption, print_json, say, write


@grouped
def sign_in(*, output: OutputOption = Output.TABLE, change: ChangeOptions, connection: Connection) -> None:
    """Print a link that signs a browser in as the operator.

    It works once, for 15 minutes. Takes the operator's own key, FOLIOT_ADMIN_KEY.
    """
    with connection.open() as api:
        if change.is_only_shown(f"make a sign-in link for {api.server.url}"):
            return
        made = api.post("sign-in-links")
        url = f"{api.server.url}/sign-in?token={made['token']}"
    say(f"works once, until {local(made['expires_ts'])}")
    if output is Output.JSON:
        print_json({"url": url, "expires_ts": made["expires_ts"]})
    else:
        write(url)
