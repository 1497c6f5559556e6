// Panels and dialogs over the page. Radix traps the focus inside and closes them on Escape.

import * as Radix from "@radix-ui/react-dialog";
import { type ReactNode, useMemo, useRef } from "react";
import { IconButton } from "./Button";

const VEIL = "animate-appear bg-veil fixed inset-0 z-40";

/** Restore the focus on close to the element that had it before. Radix restores it to a trigger button, but
 * these dialogs are opened by addresses, keys and menus. */
function useFocusBack() {
  const before = useRef<Element | null>(null);
  return useMemo(
    () => ({
      onOpenAutoFocus: () => {
        before.current = document.activeElement;
      },
      onCloseAutoFocus: (event: Event) => {
        event.preventDefault();
        if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true });
      },
    }),
    [],
  );
}

interface SheetProps {
  title: ReactNode;
  description?: ReactNode;
  /** Content beside the title. */
  actions?: ReactNode;
  children: ReactNode;
  /** Called to close the sheet. Sheets have an address, so the caller navigates to another one. */
  onClose: () => void;
}

/** A panel over a list that shows one item of it. */
export function Sheet({ title, description, actions, children, onClose }: SheetProps) {
  const focus = useFocusBack();
  return (
    <Radix.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className={VEIL} />
        <Radix.Content
          {...focus}
          // Focus the panel, not its first button: the button's tooltip would open at once.
          onOpenAutoFocus={(event) => {
            focus.onOpenAutoFocus();
            event.preventDefault();
            (event.currentTarget as HTMLElement).focus();
          }}
          className="animate-slide-in border-line bg-surface shadow-high fixed inset-y-0 right-0 z-40 flex w-full max-w-2xl flex-col border-l focus:outline-none"
          {...(description ? {} : { "aria-describedby": undefined })}
        >
          <header className="border-line flex items-start gap-2 border-b px-5 py-3.5">
            <div className="min-w-0 grow">
              <Radix.Title className="truncate text-lg font-semibold">{title}</Radix.Title>
              {description && (
                <Radix.Description className="text-ink-soft text-sm">{description}</Radix.Description>
              )}
            </div>
            {actions}
            <IconButton icon="close" label="Close" onClick={onClose} />
          </header>
          <div className="min-h-0 grow overflow-y-auto overscroll-contain px-5 py-4">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface DrawerProps {
  label: string;
  isOpen: boolean;
  onOpenChange: (isOpen: boolean) => void;
  children: ReactNode;
}

/** A panel from the left, for the navigation on narrow screens. */
export function Drawer({ label, isOpen, onOpenChange, children }: DrawerProps) {
  const focus = useFocusBack();
  return (
    <Radix.Root open={isOpen} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className={VEIL} />
        <Radix.Content
          aria-describedby={undefined}
          {...focus}
          className="animate-slide-in-left border-line bg-surface shadow-high fixed inset-y-0 left-0 z-40 flex w-64 max-w-[85vw] flex-col border-r p-3 focus:outline-none"
        >
          <Radix.Title className="sr-only">{label}</Radix.Title>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface DialogProps {
  title: ReactNode;
  description?: ReactNode;
  isOpen: boolean;
  onOpenChange: (isOpen: boolean) => void;
  children: ReactNode;
}

/** A dialog with a question or a short form. */
export function Dialog({ title, description, isOpen, onOpenChange, children }: DialogProps) {
  const focus = useFocusBack();
  return (
    <Radix.Root open={isOpen} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className={VEIL} />
        <Radix.Content
          {...(description ? {} : { "aria-describedby": undefined })}
          {...focus}
          className="animate-rise border-line bg-raised shadow-high fixed inset-x-4 top-[12vh] z-40 mx-auto max-h-[76vh] max-w-md overflow-y-auto rounded-xl border p-5 focus:outline-none"
        >
          <Radix.Title className="text-lg font-semibold">{title}</Radix.Title>
          {description && (
            <Radix.Description className="text-ink-soft mt-1 text-sm">{description}</Radix.Description>
          )}
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** A dialog near the top without a visible title, for search. */
export function Palette({ label, isOpen, onOpenChange, children }: DrawerProps) {
  const focus = useFocusBack();
  return (
    <Radix.Root open={isOpen} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className={VEIL} />
        <Radix.Content
          aria-describedby={undefined}
          {...focus}
          className="animate-rise border-line bg-raised shadow-high fixed inset-x-4 top-[12vh] z-40 mx-auto flex max-h-[70vh] max-w-xl flex-col overflow-hidden rounded-xl border focus:outline-none"
        >
          <Radix.Title className="sr-only">{label}</Radix.Title>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
