// Signing keys for messages, in the format of Standard Webhooks.

export const KEY_BYTES = 32;

/** Format a key: `whsec_` and the bytes in base64. */
export function signingKeyOf(bytes: Uint8Array): string {
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}

export function newSigningKey(): string {
  return signingKeyOf(crypto.getRandomValues(new Uint8Array(KEY_BYTES)));
}
