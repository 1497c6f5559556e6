import type { Status } from "@/api/types";
import { statusColour } from "@/ui/Badge";
import { strength } from "./cells";

const FAINTEST = 22;
const STRONGEST = 68;

/** The background of a cell: its status colour, stronger for higher numbers. Text is readable on all. */
export function ground(status: Status | null, number: number, most: number): string {
  const share = Math.round(FAINTEST + (STRONGEST - FAINTEST) * strength(number, most));
  const colour = status === null ? "var(--ink-faint)" : statusColour(status);
  return `color-mix(in oklab, ${colour} ${share}%, var(--surface))`;
}

/** Dashed outline for planned executions. */
export const PLANNED_LOOK = "border border-dashed border-accent/30 bg-accent-soft/50";

export const PLANNED_COLOUR = "color-mix(in oklab, var(--accent) 30%, var(--surface))";
