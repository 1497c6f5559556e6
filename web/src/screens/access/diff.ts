// What changed between two JSON values. Pure.

export interface Change {
  /** Where, such as `trigger.expression`; empty: the whole. */
  path: string;
  /** `undefined`: it was not there. */
  before: unknown;
  /** `undefined`: it is not there any more. */
  after: unknown;
}

/** Every part that differs, in order of place. Lists are compared as a whole: what moved in one is rarely told
 * by its places. */
export function changesBetween(before: unknown, after: unknown): Change[] {
  const found: Change[] = [];
  collect("", absent(before), absent(after), found);
  return found;
}

/** A record without a side has `null` there. */
function absent(value: unknown): unknown {
  return value === null ? undefined : value;
}

function collect(path: string, before: unknown, after: unknown, found: Change[]): void {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    for (const name of names) {
      collect(path === "" ? name : `${path}.${name}`, before[name], after[name], found);
    }
    return;
  }
  // What is new or gone is told part by part as well, if it has parts.
  if (hasParts(before) && after === undefined) {
    collect(path, before, {}, found);
  } else if (before === undefined && hasParts(after)) {
    collect(path, {}, after, found);
  } else if (!isSame(before, after)) {
    found.push({ path, before, after });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function hasParts(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length > 0;
}

/** Whether they are the same, in whatever order their parts are. */
function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((each, index) => isSame(each, b[index]));
  }
  if (isObject(a) && isObject(b)) {
    const names = Object.keys(a);
    return (
      names.length === Object.keys(b).length && names.every((name) => name in b && isSame(a[name], b[name]))
    );
  }
  return a === b;
}

/** A value in a line or a few; texts as they are. */
export function valueWords(value: unknown): string {
  if (typeof value === "string") return value === "" ? '""' : value;
  return JSON.stringify(value) ?? "";
}
