// Context shared by all parts of the form: the draft and its problems.

import { createContext, useContext } from "react";
import type { FieldProblem } from "@/api/problem";
import type { Kind, TaskFunction } from "@/api/schedule-editing";
import type { Draft } from "./draft";
import type { SchemaField } from "./schema-fields";

export interface FormState {
  readonly draft: Draft;
  readonly change: (changes: Partial<Draft>) => void;
  readonly problem: (pointer: string) => FieldProblem | null;
  /** Argument fields of the chosen task function. Null: unknown. */
  readonly fields: readonly SchemaField[] | null;
  /** The chosen task function. Null: unknown, or another kind of target. */
  readonly task: TaskFunction | null;
  /** The kinds that the server lists. */
  readonly kinds: readonly Kind[];
}

const Context = createContext<FormState | null>(null);
export const FormProvider = Context.Provider;

export function useForm() {
  const state = useContext(Context);
  if (state === null) {
    throw new Error("a part of the form is outside of it");
  }
  return state;
}
