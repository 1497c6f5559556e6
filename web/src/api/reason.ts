// The reason for a change, for requests without a body.

const MAX_LENGTH = 1000;

/** The header with the reason. Headers can carry only Latin-1: other characters become question marks. */
export function because(reason: string): Record<string, string> {
  const text = [...reason.trim()].map(asLatin).join("").slice(0, MAX_LENGTH);
  return text === "" ? {} : { "X-Foliot-Reason": text };
}

function asLatin(letter: string): string {
  const code = letter.codePointAt(0) ?? 0;
  if (code < 0x20 || code === 0x7f) return " ";
  return code <= 0xff ? letter : "?";
}
