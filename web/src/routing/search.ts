// State in the query string. A shape defines which parameters a screen has, and their allowed values.
//
//     const shape = { q: text(), state: anyOf(STATES), sort: oneOf(SORTS, "name") };
//     const [filters, setFilters] = useSearch(shape);
//     setFilters({ state: ["paused"] });
//
// Parameters outside the shape are left alone. A value that is not allowed counts as not given. A parameter
// with its initial value is not written, which keeps addresses short.

import { useCallback, useMemo } from "react";
import { navigate, useLocation } from "./location";

export interface Field<T> {
  read(given: string[]): T;
  /** The values to write; empty: leave the parameter out. */
  write(value: T): readonly string[];
}

export type Shape = Readonly<Record<string, Field<never>>>;
export type Values<S> = { readonly [Name in keyof S]: S[Name] extends Field<infer T> ? T : never };

/** A parameter with any text; empty if not given. */
export function text(): Field<string> {
  return { read: (given) => given[0] ?? "", write: (value) => (value === "" ? [] : [value]) };
}

/** A parameter with any number of texts. */
export function texts(): Field<readonly string[]> {
  return { read: (given) => unique(given.filter((each) => each !== "")), write: (value) => value };
}

/** A parameter with one of the allowed values. */
export function oneOf<T extends string>(allowed: readonly T[], initial: T): Field<T> {
  return {
    read: (given) => allowed.find((each) => each === given[0]) ?? initial,
    write: (value) => (value === initial ? [] : [value]),
  };
}

/** A parameter with any number of the allowed values. */
export function anyOf<T extends string>(allowed: readonly T[]): Field<readonly T[]> {
  return {
    read: (given) => unique(allowed.filter((each) => given.includes(each))),
    write: (value) => value,
  };
}

export function readSearch<S extends object>(shape: S, search: string): Values<S> {
  const given = new URLSearchParams(search);
  const entries = Object.entries(shape as Record<string, Field<unknown>>);
  return Object.fromEntries(
    entries.map(([name, field]) => [name, field.read(given.getAll(name))]),
  ) as Values<S>;
}

/** Change some values of a query string. Other parameters keep their values and order. */
export function writeSearch<S extends object>(shape: S, search: string, changes: Partial<Values<S>>): string {
  const made = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    const field = (shape as Record<string, Field<unknown>>)[name];
    if (field === undefined) continue;
    made.delete(name);
    for (const each of field.write(value)) made.append(name, each);
  }
  const written = made.toString();
  return written === "" ? "" : `?${written}`;
}

/** Build an address with only these values. */
export function addressOf<S extends object>(path: string, shape: S, values: Partial<Values<S>>): string {
  return path + writeSearch(shape, "", values);
}

export function useSearch<S extends object>(
  shape: S,
): [Values<S>, (changes: Partial<Values<S>>, options?: { replace?: boolean }) => void] {
  const { path, search } = useLocation();
  const values = useMemo(() => readSearch(shape, search), [shape, search]);
  const change = useCallback(
    (changes: Partial<Values<S>>, options?: { replace?: boolean }) => {
      navigate(path + writeSearch(shape, search, changes), options);
    },
    [shape, path, search],
  );
  return [values, change];
}

function unique<T>(values: readonly T[]): readonly T[] {
  return [...new Set(values)];
}
