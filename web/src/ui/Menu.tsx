// Dropdown menus.
//
//     <Menu button={<IconButton icon="more" label="Actions" />}>
//       <MenuItem icon="play" whyNot={whyNot} onSelect={run}>Run now</MenuItem>
//     </Menu>

import * as Radix from "@radix-ui/react-dropdown-menu";
import { type ReactElement, type ReactNode, useId } from "react";
import { Icon, type IconName } from "./Icon";

interface MenuProps {
  button: ReactElement;
  children: ReactNode;
  align?: "start" | "end";
  isOpen?: boolean;
  onOpenChange?: (isOpen: boolean) => void;
}

export function Menu({ button, children, align = "end", isOpen, onOpenChange }: MenuProps) {
  return (
    <Radix.Root
      modal={false}
      {...(isOpen === undefined ? {} : { open: isOpen })}
      {...(onOpenChange ? { onOpenChange } : {})}
    >
      <Radix.Trigger asChild>{button}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          loop
          className="animate-rise border-line bg-raised shadow-high z-50 max-h-(--radix-dropdown-menu-content-available-height) min-w-44 max-w-80 overflow-y-auto rounded-lg border p-1"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

const ITEM =
  "group flex w-full cursor-default items-center gap-2 rounded-md px-2 py-1.5 text-sm outline-none select-none " +
  "data-highlighted:bg-hover";

interface ItemProps {
  children: ReactNode;
  icon?: IconName;
  isDangerous?: boolean;
  whyNot?: string | null;
  onSelect: () => void;
}

export function MenuItem({ children, icon, isDangerous = false, whyNot = null, onSelect }: ItemProps) {
  const reason = useId();
  return (
    <Radix.Item
      aria-disabled={whyNot !== null || undefined}
      aria-describedby={whyNot === null ? undefined : reason}
      onSelect={(event) => {
        if (whyNot === null) onSelect();
        else event.preventDefault();
      }}
      className={`${ITEM} ${isDangerous && whyNot === null ? "text-danger" : ""} aria-disabled:text-ink-faint`}
    >
      {icon && <Icon name={icon} size={15} className={isDangerous ? "" : "text-ink-faint"} />}
      <span className="flex min-w-0 flex-col">
        <span>{children}</span>
        {whyNot !== null && (
          <span id={reason} className="text-ink-faint text-xs">
            {whyNot}
          </span>
        )}
      </span>
    </Radix.Item>
  );
}

interface CheckItemProps {
  children: ReactNode;
  isChecked: boolean;
  onChange: (isChecked: boolean) => void;
}

/** A menu item with a check mark. The menu stays open, so that several can be chosen. */
export function MenuCheckItem({ children, isChecked, onChange }: CheckItemProps) {
  return (
    <Radix.CheckboxItem
      checked={isChecked}
      onCheckedChange={onChange}
      onSelect={(event) => event.preventDefault()}
      className={ITEM}
    >
      <span
        className={`grid size-4 place-items-center rounded border ${isChecked ? "border-accent bg-accent text-on-accent" : "border-control"}`}
      >
        <Radix.ItemIndicator>
          <Icon name="check" size={12} />
        </Radix.ItemIndicator>
      </span>
      {children}
    </Radix.CheckboxItem>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  choices: readonly { value: T; label: ReactNode; icon?: IconName; hint?: string }[];
  onChange: (value: T) => void;
}

/** A group of menu items. The user chooses one. */
export function MenuChoice<T extends string>({ label, value, choices, onChange }: ChoiceProps<T>) {
  return (
    <Radix.RadioGroup value={value} onValueChange={(chosen) => onChange(chosen as T)}>
      <Radix.Label className="text-ink-faint px-2 pt-1.5 pb-1 text-xs font-medium">{label}</Radix.Label>
      {choices.map((choice) => (
        <Radix.RadioItem key={choice.value} value={choice.value} className={ITEM}>
          {choice.icon && <Icon name={choice.icon} size={15} className="text-ink-faint" />}
          <span className="flex grow flex-col">
            <span>{choice.label}</span>
            {choice.hint && <span className="text-ink-faint text-xs">{choice.hint}</span>}
          </span>
          <Radix.ItemIndicator>
            <Icon name="check" size={14} className="text-accent" />
          </Radix.ItemIndicator>
        </Radix.RadioItem>
      ))}
    </Radix.RadioGroup>
  );
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <Radix.Label className="text-ink-faint px-2 pt-1.5 pb-1 text-xs">{children}</Radix.Label>;
}

export function MenuLine() {
  return <Radix.Separator className="bg-line -mx-1 my-1 h-px" />;
}
