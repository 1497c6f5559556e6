import { type Change, valueWords } from "./diff";

/** Table of changed fields with their values before and after. */
export function DiffTable({ changes }: { changes: readonly Change[] }) {
  return (
    <div className="border-line overflow-hidden rounded-lg border">
      <table className="w-full table-fixed text-xs">
        <colgroup>
          <col className="w-2/5 sm:w-1/3" />
          <col />
        </colgroup>
        <thead className="sr-only">
          <tr>
            <th scope="col">Where</th>
            <th scope="col">Before and after</th>
          </tr>
        </thead>
        <tbody className="divide-line divide-y">
          {changes.map((change) => (
            <tr key={change.path}>
              <th
                scope="row"
                className="text-ink-soft px-3 py-1.5 text-left align-top font-mono font-normal break-words"
              >
                {change.path || "all of it"}
              </th>
              <td className="border-line border-l p-0 align-top font-mono">
                {change.before !== undefined && <Side sign="−" words="before" value={change.before} />}
                {change.after !== undefined && <Side sign="+" words="after" value={change.after} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Side({ sign, words, value }: { sign: "−" | "+"; words: string; value: unknown }) {
  return (
    <div
      className={`flex gap-2 px-3 py-1.5 ${sign === "+" ? "bg-good-soft text-good" : "bg-bad-soft text-bad"}`}
    >
      <span aria-hidden="true">{sign}</span>
      <span className="sr-only">{words}:</span>
      <span className="text-ink min-w-0 break-words whitespace-pre-wrap">{valueWords(value)}</span>
    </div>
  );
}
