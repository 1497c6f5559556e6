import { describe, expect, test } from "vitest";
import { PLACES } from "./places";
import { letterOf, meaningOf } from "./shortcuts";

function press(key: string, held: Partial<Record<"ctrlKey" | "metaKey" | "altKey", boolean>> = {}) {
  return { key, ctrlKey: false, metaKey: false, altKey: false, ...held };
}

describe("a key", () => {
  test("goes to a screen only after G", () => {
    expect(meaningOf(press("s"), false)).toBeNull();
    expect(meaningOf(press("g"), false)).toEqual({ kind: "prefix" });
    expect(meaningOf(press("s"), true)).toEqual({ kind: "go", path: "/schedules" });
  });

  test("that no screen has leads nowhere", () => {
    expect(meaningOf(press("x"), true)).toBeNull();
  });

  test("with Ctrl, Alt or Command is the browser's", () => {
    expect(meaningOf(press("?", { ctrlKey: true }), false)).toBeNull();
    expect(meaningOf(press("s", { metaKey: true }), true)).toBeNull();
    expect(meaningOf(press("g", { altKey: true }), false)).toBeNull();
  });

  test("shows the list of keys, and goes to the filter", () => {
    expect(meaningOf(press("?"), false)).toEqual({ kind: "help" });
    expect(meaningOf(press("/"), false)).toEqual({ kind: "filter" });
  });
});

test("each screen has a letter of its own", () => {
  expect(new Set(PLACES.map(letterOf)).size).toBe(PLACES.length);
});
