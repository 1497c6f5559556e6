import { type Family, formOf, isBuiltIn, kindChoices, valuesIn } from "@/kinds";
import { Choices, ProblemLine } from "./controls";
import { useForm } from "./form";

/** Choice of the kind of trigger or target, and the fields of the chosen kind. */
export function KindPicker({ family, legend }: { family: Family; legend: string }) {
  const { draft, change, problem, kinds } = useForm();
  const present = draft[family];
  const { kind, values } = present;
  const form = formOf(family, kind);
  const own = valuesIn(family, draft);
  function put(changes: object) {
    change({ [family]: { ...present, values: { ...values, [kind]: { ...(own as object), ...changes } } } });
  }
  return (
    <>
      <Choices
        legend={legend}
        isLegendHidden
        value={kind}
        choices={kindChoices(family, kinds, [kind])}
        onChange={(chosen) => change({ [family]: { ...present, kind: chosen } })}
      />
      {/* The form from a schema shows the problem of the whole by itself. */}
      <ProblemLine
        problem={problem(`/${family}/kind`) ?? (isBuiltIn(family, kind) ? problem(`/${family}`) : null)}
      />
      <form.Fields key={kind} values={own} change={put} />
    </>
  );
}
