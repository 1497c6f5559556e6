// Keys that messages are signed with, as Standard Webhooks writes them. Pure, but for the bytes that are given.

export const KEY_BYTES = 32;

/** `whsec_` and the bytes in base64. */
export function signingKeyOf(bytes: Uint8Array): string {
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}

export function newSigningKey(): string {
  return signingKeyOf(crypto.getRandomValues(new Uint8Array(KEY_BYTES)));
}
