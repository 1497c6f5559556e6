"""Task functions that create and send their own spans, as an application would."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from foliot import Fire, Foliot

provider = TracerProvider(resource=Resource.create({"service.name": "application"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("application")
app = Foliot()


@app.task()
async def on_the_loop(fire: Fire) -> str:
    with tracer.start_as_current_span("own"):
        return fire.traceparent


@app.task(isolation="thread")
def in_a_thread(fire: Fire) -> str:
    with tracer.start_as_current_span("own"):
        return fire.traceparent


@app.task(isolation="process")
def in_a_process(fire: Fire) -> str:
    import os

    with tracer.start_as_current_span("own"):
        return os.environ["TRACEPARENT"]
