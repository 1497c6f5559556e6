// Why something is done, where a request has no body to say it in.

const MAX_LENGTH = 1000;

/** The header that says why. Headers carry Latin letters alone: others become question marks. */
export function because(reason: string): Record<string, string> {
  const text = [...reason.trim()].map(asLatin).join("").slice(0, MAX_LENGTH);
  return text === "" ? {} : { "X-Foliot-Reason": text };
}

function asLatin(letter: string): string {
  const code = letter.codePointAt(0) ?? 0;
  if (code < 0x20 || code === 0x7f) return " ";
  return code <= 0xff ? letter : "?";
}
