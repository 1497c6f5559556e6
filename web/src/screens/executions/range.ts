// Ranges of fire times, as text and as values of `datetime-local` inputs. Pure functions.

import { instant } from "@/time/format";

/** "from 09:30:00", "03-29 08:00 to 09:30:00". */
export function rangeWords(from: string, to: string, zone: string, now: Date): string {
  const words = (at: string) => instant(new Date(at), zone, now);
  if (from === "") return to === "" ? "any" : `before ${words(to)}`;
  return to === "" ? `from ${words(from)}` : `${words(from)} to ${words(to)}`;
}

/** An instant as the value of a `datetime-local` input. */
export function localOf(at: string): string {
  if (at === "") {
    return "";
  }
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
