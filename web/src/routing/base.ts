// The path under which the application is mounted. The server writes it into the page.

/** Prefix of all paths of the application, without a trailing slash: for example "" or "/foliot". */
export const base: string = readBase();

function readBase(): string {
  if (typeof document === "undefined") {
    return "";
  }
  // A development server does not set it.
  return document.querySelector<HTMLMetaElement>('meta[name="foliot-base"]')?.content ?? "";
}

/** The base URL of the server, for the CLI and other programs. */
export function serverUrl(): string {
  return window.location.origin + base;
}
