import { useWhyNot } from "@/api/session";
import { navigate } from "@/routing/location";
import { Button } from "@/ui/Button";
import { CodeBlock } from "@/ui/Code";
import { Icon, type IconName } from "@/ui/Icon";

const COMMAND = `foliot schedule create nightly-report \\
  --cron "0 2 * * *" --tz Europe/Berlin \\
  --http POST https://agent.example/run`;

const CODE = `from foliot import Foliot, cron

app = Foliot()

@app.task(retries=3)
async def send_report(region: str) -> str:
    return f"sent to {region}"

app.schedule("report-eu", send_report,
             args={"region": "eu"},
             when=cron("0 7 * * mon-fri", tz="Europe/Paris"))

app.run()  # or: foliot up --tasks this_file.py`;

/** Shown when there are no schedules: the three ways to create one. */
export function FirstSchedule() {
  const whyNot = useWhyNot("editor");
  return (
    <section aria-labelledby="first" className="mx-auto flex w-full max-w-5xl flex-col gap-5 py-4">
      <div className="text-center">
        <h2 id="first" className="text-lg font-semibold">
          There is no schedule yet
        </h2>
        <p className="text-ink-soft text-sm">Three ways to make the first. It shows up here at once.</p>
      </div>
      <div className="grid gap-4 lg:grid-cols-2">
        <div className="flex min-w-0 flex-col gap-4">
          <Way
            icon="form"
            title="With the form"
            text="Choose when and what, and see the next times before you save."
          >
            <Button look="primary" icon="plus" whyNot={whyNot} onClick={() => navigate("/schedules/new")}>
              New schedule
            </Button>
          </Way>
          <Way
            icon="terminal"
            title="On the command line"
            text="From a shell, a script, or a file kept in version control."
          >
            <CodeBlock code={COMMAND} what="the command" />
          </Way>
        </div>
        <Way
          icon="code"
          title="In your code"
          text="Declared beside the function that it runs. Restarts never double it."
        >
          <CodeBlock code={CODE} what="the code" />
        </Way>
      </div>
    </section>
  );
}

interface WayProps {
  icon: IconName;
  title: string;
  text: string;
  children: React.ReactNode;
}

function Way({ icon, title, text, children }: WayProps) {
  return (
    <div className="border-line bg-surface shadow-low flex min-w-0 grow flex-col gap-3 rounded-lg border p-4">
      <h3 className="flex items-center gap-2 font-semibold">
        <Icon name={icon} className="text-accent" />
        {title}
      </h3>
      <p className="text-ink-soft text-sm">{text}</p>
      <div className="min-w-0">{children}</div>
    </div>
  );
}
