// Where the application is mounted: the server writes it into the page.

/** The path before all addresses of the application, without a slash at its end: "" or "/foliot", say. */
export const base: string = readBase();

function readBase(): string {
  if (typeof document === "undefined") {
    return "";
  }
  // A development server leaves it empty.
  return document.querySelector<HTMLMetaElement>('meta[name="foliot-base"]')?.content ?? "";
}

/** The address of the server, as commands and other programs need it. */
export function serverUrl(): string {
  return window.location.origin + base;
}
