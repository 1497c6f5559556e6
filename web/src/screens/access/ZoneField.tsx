import { useId } from "react";
import type { FieldProblem } from "@/api/problem";
import { TextField } from "@/ui/Field";

interface Props {
  value: string;
  onChange: (value: string) => void;
  problem: FieldProblem | null;
}

/** Input for the time zone of a calendar's days. */
export function ZoneField({ value, onChange, problem }: Props) {
  const id = useId();
  return (
    <>
      <TextField
        label="Time zone"
        hint="Whose days they are. Left empty: those of each schedule's own zone."
        value={value}
        onChange={onChange}
        list={id}
        autoComplete="off"
        spellCheck={false}
        placeholder="Europe/Berlin"
        problem={problem}
      />
      <datalist id={id}>
        {Intl.supportedValuesOf("timeZone").map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </>
  );
}
