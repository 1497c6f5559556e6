import { expect, test } from "vitest";
import { because } from "./reason";

test("no reason is no header", () => {
  expect(because("  ")).toEqual({});
});

test("a reason of any letters makes a header that a browser takes", () => {
  const made = because("  für “Łódź”\n👍 ");
  expect(made).toEqual({ "X-Foliot-Reason": "für ??ód?? ?" });
  expect(() => new Headers(made)).not.toThrow();
});
