// Differences between two JSON values. Pure functions.

export interface Change {
  /** Path such as `trigger.expression`. Empty: the whole value. */
  path: string;
  /** `undefined`: the field was added. */
  before: unknown;
  /** `undefined`: the field was removed. */
  after: unknown;
}

/** List all differing fields. Lists are compared as a whole: after an insertion, every index would differ. */
export function changesBetween(before: unknown, after: unknown): Change[] {
  const found: Change[] = [];
  collect("", absent(before), absent(after), found);
  return found;
}

/** Convert `null` to `undefined`: a record without a before or after has `null` there. */
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
  // List added and removed objects field by field as well.
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

/** Deep equality. The order of object keys does not matter. */
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

/** A value as short text. Strings are not quoted, except the empty string. */
export function valueWords(value: unknown): string {
  if (typeof value === "string") return value === "" ? '""' : value;
  return JSON.stringify(value) ?? "";
}
