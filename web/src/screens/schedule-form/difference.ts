// What is different between two JSON documents, and three of them brought together. Pure.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

export interface Difference {
  /** An RFC 6901 JSON pointer. */
  readonly pointer: string;
  /** Undefined where nothing was, or is. */
  readonly before: unknown;
  readonly after: unknown;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Objects are the same whatever the order of their names. */
export function isSame(a: unknown, b: unknown): boolean {
  return a === b || differencesOf(a, b).length === 0;
}

/** Every difference, as deep in the objects as can be told. Lists are told as a whole: what was put in front of
 * one would else look as if all of it had changed. */
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

/** `mine`, which was made of `base`, made of `theirs` instead: what only they changed is theirs. Parts of another
 * kind are not mixed: a trigger or target that one side replaced is that side's as a whole. */
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

/** "trigger, expression" of "/trigger/expression". */
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
