import { type ComponentProps, type MouseEvent, useId } from "react";
import { Icon, type IconName } from "./Icon";
import { Tooltip } from "./Tooltip";

type Look = "primary" | "plain" | "quiet" | "link" | "danger" | "quiet danger";

const LOOKS: Record<Look, string> = {
  primary: "bg-accent text-on-accent not-aria-disabled:hover:bg-accent-strong border-transparent shadow-low",
  plain: "bg-surface text-ink border-line-strong not-aria-disabled:hover:bg-hover shadow-low",
  quiet: "text-ink-soft border-transparent not-aria-disabled:hover:bg-hover not-aria-disabled:hover:text-ink",
  link: "text-accent border-transparent not-aria-disabled:hover:bg-hover",
  "quiet danger": "text-danger border-transparent not-aria-disabled:hover:bg-danger-soft",
  danger: "bg-danger text-on-accent not-aria-disabled:hover:bg-danger-strong border-transparent shadow-low",
};

const COMMON =
  "inline-flex items-center justify-center gap-1.5 rounded-md border font-medium whitespace-nowrap transition-colors " +
  "select-none aria-disabled:cursor-not-allowed aria-disabled:opacity-55 aria-busy:cursor-progress";

interface Props extends Omit<ComponentProps<"button">, "disabled"> {
  look?: Look;
  size?: "small" | "usual";
  icon?: IconName;
  /** Why the button is disabled; null: it is enabled. A disabled button can be focused, and shows this. */
  whyNot?: string | null;
  isBusy?: boolean;
}

export function Button({
  look = "plain",
  size = "usual",
  icon,
  whyNot = null,
  isBusy = false,
  className = "",
  children,
  onClick,
  ...rest
}: Props) {
  const reason = useId();
  const isOff = whyNot !== null || isBusy;
  const button = (
    <button
      type="button"
      {...rest}
      aria-disabled={isOff || undefined}
      aria-busy={isBusy || undefined}
      aria-describedby={whyNot === null ? rest["aria-describedby"] : reason}
      onClick={(event) => {
        if (isOff) event.preventDefault();
        else onClick?.(event);
      }}
      className={`${COMMON} ${LOOKS[look]} ${size === "small" ? "h-7 px-2 text-xs" : "h-8 px-3 text-sm"} ${className}`}
    >
      {isBusy ? (
        <Icon name="spin" size={14} className="animate-spin" />
      ) : (
        icon && <Icon name={icon} size={14} />
      )}
      {children}
    </button>
  );
  return whyNot === null ? button : <WithReason id={reason} reason={whyNot} button={button} />;
}

interface IconButtonProps extends Omit<ComponentProps<"button">, "disabled" | "aria-label" | "children"> {
  icon: IconName;
  /** What the button does: its accessible name and its tooltip. */
  label: string;
  whyNot?: string | null;
  side?: "top" | "right" | "bottom" | "left";
}

export function IconButton({
  icon,
  label,
  whyNot = null,
  side = "bottom",
  className = "",
  onClick,
  ...rest
}: IconButtonProps) {
  const reason = useId();
  const button = (
    <button
      type="button"
      {...rest}
      aria-label={label}
      aria-disabled={whyNot !== null || undefined}
      aria-describedby={whyNot === null ? undefined : reason}
      onClick={(event: MouseEvent<HTMLButtonElement>) => {
        if (whyNot === null) onClick?.(event);
        else event.preventDefault();
      }}
      className={`${COMMON} ${LOOKS.quiet} size-8 ${className}`}
    >
      <Icon name={icon} />
    </button>
  );
  return whyNot === null ? (
    <Tooltip text={label} side={side}>
      {button}
    </Tooltip>
  ) : (
    <WithReason id={reason} reason={`${label}: ${whyNot}`} button={button} />
  );
}

function WithReason({ id, reason, button }: { id: string; reason: string; button: React.ReactElement }) {
  return (
    <>
      <Tooltip text={reason}>{button}</Tooltip>
      <span id={id} className="sr-only">
        {reason}
      </span>
    </>
  );
}
