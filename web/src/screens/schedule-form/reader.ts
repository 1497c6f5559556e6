// Converts texts of form controls to values, and collects the problems by JSON pointer.

import { type Length, numberOf, secondsOf } from "./duration";
import { jsonOf } from "./schema-fields";
import { instantAt, isZone, wallTime } from "./wall";

/** A name and its value, in the order of input. */
export interface Pair {
  readonly key: number;
  readonly name: string;
  readonly value: string;
}

export function pairsOf(known: Readonly<Record<string, string>>): Pair[] {
  return Object.entries(known).map(([name, value], key) => ({ key, name, value }));
}

export function pretty(value: unknown): string {
  return JSON.stringify(value ?? {}, null, 2);
}

export class Reader {
  readonly problems = new Map<string, string>();

  needed(pointer: string, text: string, problem: string): string {
    if (text.trim() === "") this.problems.set(pointer, problem);
    return text.trim();
  }

  number(pointer: string, text: string): number {
    const number = numberOf(text);
    if (number === null) this.problems.set(pointer, "Is not a number.");
    return number ?? 0;
  }

  whole(pointer: string, text: string): number {
    const number = this.number(pointer, text);
    if (!Number.isInteger(number)) this.problems.set(pointer, "Is not a whole number.");
    return number;
  }

  length(pointer: string, length: Length): number {
    const seconds = secondsOf(length);
    if (seconds === null) this.problems.set(pointer, "Is not a length of time.");
    return seconds ?? 0;
  }

  zone(pointer: string, text: string): string {
    const zone = this.needed(pointer, text, "Name a time zone.");
    // Not validated here: the server may know more zones than this browser.
    return zone;
  }

  instant(pointer: string, text: string, zone: string, before: string | null): string | null {
    if (text === "") {
      return null;
    }
    if (before !== null && wallTime(before, zone) === text) {
      return before;
    }
    const instant = instantAt(text, zone);
    if (instant === null) {
      const problem = isZone(zone) ? "Is not a time." : `This browser does not know the time zone ${zone}.`;
      this.problems.set(pointer, problem);
    }
    return instant;
  }

  pairs(pointer: string, pairs: readonly Pair[]): Record<string, string> {
    const made: Record<string, string> = {};
    for (const { name, value } of pairs) {
      const trimmed = name.trim();
      if (trimmed === "" && value === "") continue;
      if (trimmed === "") this.problems.set(pointer, `Name what ${value} is.`);
      else if (trimmed in made) this.problems.set(pointer, `${trimmed} is given twice.`);
      else made[trimmed] = value;
    }
    return made;
  }

  /** Add problems that are known by paths below a pointer. "": at the pointer itself. */
  add(pointer: string, problems: Readonly<Record<string, string>>): void {
    for (const [path, problem] of Object.entries(problems)) {
      this.problems.set(path === "" ? pointer : `${pointer}/${path}`, problem);
    }
  }

  json(pointer: string, text: string): unknown {
    const read = jsonOf(text);
    if ("problem" in read) {
      this.problems.set(pointer, read.problem);
      return null;
    }
    return read.value;
  }
}
