// Differences between two JSON documents, and a three-way merge. Pure functions.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

export interface Difference {
  /** An RFC 6901 JSON pointer. */
  readonly pointer: string;
  /** Undefined: the field does not exist on this side. */
  readonly before: unknown;
  readonly after: unknown;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Deep equality. The order of object keys does not matter. */
export function isSame(a: unknown, b: unknown): boolean {
  return a === b || differencesOf(a, b).length === 0;
}

/** List all differences, down to single fields of objects. Lists are compared as a whole: after an
 * insertion at the front, every index would differ. */
export function differencesOf(before: unknown, after: unknown, pointer = ""): Difference[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) =>
      differencesOf(
        before[name],
        after[name],
        `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`,
      ),
    );
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const isEqual =
      before.length === after.length && before.every((item, index) => isSame(item, after[index]));
    return isEqual ? [] : [{ pointer, before, after }];
  }
  return before === after ? [] : [{ pointer, before, after }];
}

/** Three-way merge: apply the changes from `base` to `mine` to `theirs`. If both sides changed a field,
 * mine wins. Objects of different kinds (triggers, targets) are not merged: mine is taken as a whole. */
export function rebased<T>(base: T, mine: T, theirs: T): T {
  if (isSame(base, mine)) {
    return theirs;
  }
  if (isSame(base, theirs) || isSame(mine, theirs)) {
    return mine;
  }
  if (!isObject(base) || !isObject(mine) || !isObject(theirs)) {
    return mine;
  }
  if (base.kind !== mine.kind || base.kind !== theirs.kind) {
    return mine;
  }
  const made: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(mine), ...Object.keys(theirs)])) {
    const value = rebased(base[name], mine[name], theirs[name]);
    if (value !== undefined) made[name] = value;
  }
  return made as T;
}

/** "trigger, expression" for "/trigger/expression". */
export function wordsOf(pointer: string): string {
  if (pointer === "") {
    return "all of it";
  }
  return pointer
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~").replaceAll("_", " "))
    .join(" › ");
}

/** A value on one line. */
export function valueText(value: unknown): string {
  if (value === undefined || value === null) {
    return "—";
  }
  return typeof value === "string" ? (value === "" ? '""' : value) : JSON.stringify(value);
}
