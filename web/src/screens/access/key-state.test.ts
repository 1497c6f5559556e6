import { describe, expect, test } from "vitest";
import type { Key } from "@/api/keys";
import { endOf, inOrder, keyStateOf } from "./key-state";

const now = new Date("2026-03-01T00:00:00Z");

function key(parts: Partial<Key>): Key {
  return {
    key_id: "k",
    host_id: "h",
    name: "n",
    role: "viewer",
    created_by: null,
    created_ts: "2026-01-01T00:00:00Z",
    expires_ts: null,
    revoked_ts: null,
    last_used_ts: null,
    ...parts,
  };
}

describe("a key", () => {
  test("without an end is active", () => {
    expect(keyStateOf(key({}), now)).toBe("active");
  });

  test("is said to expire in its last week, and has expired at its end", () => {
    const ends = ["2026-03-08T00:00:01Z", "2026-03-08T00:00:00Z", "2026-03-01T00:00:00Z"];
    expect(ends.map((expires_ts) => keyStateOf(key({ expires_ts }), now))).toEqual([
      "active",
      "expiring",
      "expired",
    ]);
  });

  test("that was revoked is that, whatever its end", () => {
    expect(
      keyStateOf(key({ revoked_ts: "2026-02-01T00:00:00Z", expires_ts: "2027-01-01T00:00:00Z" }), now),
    ).toBe("revoked");
  });
});

test("keys that work come first, the latest of them at the top", () => {
  const keys = [
    key({ key_id: "revoked", created_ts: "2026-02-20T00:00:00Z", revoked_ts: "2026-02-21T00:00:00Z" }),
    key({ key_id: "old" }),
    key({ key_id: "new", created_ts: "2026-02-01T00:00:00Z" }),
  ];
  expect(inOrder(keys, now).map((each) => each.key_id)).toEqual(["new", "old", "revoked"]);
});

test("a lifetime in days is counted from now; never is no end", () => {
  expect(endOf("30", "", now)).toBe("2026-03-31T00:00:00.000Z");
  expect(endOf("never", "2026-05-01", now)).toBeNull();
  expect(endOf("day", "", now)).toBeNull();
});
