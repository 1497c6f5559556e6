// Context shared by all parts of the form: the draft and its problems.

import { createContext, useContext } from "react";
import type { FieldProblem } from "@/api/problem";
import type { ArgumentField } from "./arguments";
import type { Draft, TargetDraft, TriggerDraft } from "./draft";

export interface FormState {
  readonly draft: Draft;
  readonly change: (changes: Partial<Draft>) => void;
  readonly problem: (pointer: string) => FieldProblem | null;
  /** Argument fields of the chosen task function. Null: unknown. */
  readonly fields: readonly ArgumentField[] | null;
}

const Context = createContext<FormState | null>(null);
export const FormProvider = Context.Provider;

export function useForm() {
  const state = useContext(Context);
  if (state === null) {
    throw new Error("a part of the form is outside of it");
  }
  const { draft, change } = state;
  return {
    ...state,
    changeTrigger: (changes: Partial<TriggerDraft>) => change({ trigger: { ...draft.trigger, ...changes } }),
    changeTarget: (changes: Partial<TargetDraft>) => change({ target: { ...draft.target, ...changes } }),
  };
}
