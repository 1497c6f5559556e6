import { expect, test } from "vitest";
import { mutedUntil } from "./mute";

test("a rule is muted for hours, or to a time that is to come", () => {
  const now = new Date("2026-03-01T12:00:00Z");
  expect(mutedUntil("8", "", now)).toBe("2026-03-01T20:00:00.000Z");
  expect(mutedUntil("time", "", now)).toBeNull();
  expect(mutedUntil("time", "2020-01-01T00:00", now)).toBeNull();
  expect(mutedUntil("time", "2031-01-01T00:00", now)).toBe(new Date("2031-01-01T00:00").toISOString());
});
