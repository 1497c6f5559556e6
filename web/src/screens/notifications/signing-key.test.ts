import { expect, test } from "vitest";
import { KEY_BYTES, signingKeyOf } from "./signing-key";

test("a signing key is what Standard Webhooks takes", () => {
  expect(signingKeyOf(new Uint8Array([0, 255, 16]))).toBe("whsec_AP8Q");
  expect(atob(signingKeyOf(new Uint8Array(KEY_BYTES)).slice(6))).toHaveLength(KEY_BYTES);
});
