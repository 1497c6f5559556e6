"""A FastAPI application with schedules of its own.

    uvicorn examples.fastapi_app:web --workers 4

However many server processes there are, one of them leads, and each fire time runs once.
"""

from fastapi import FastAPI

from foliot import Fire, Foliot, every

app = Foliot()


@app.task(timeout="1m")
async def refresh_rates(currency: str, fire: Fire) -> str:
    """Fetch the exchange rates of a currency."""
    return f"rates of {currency} as of {fire.fire_ts:%H:%M:%S}"


app.schedule("refresh-eur", refresh_rates, args={"currency": "EUR"}, when=every(seconds=1))

web = FastAPI(lifespan=app.lifespan())


@web.get("/")
async def index() -> dict[str, str]:
    return {"hello": "world"}
