// The icons, drawn on a grid of 16 with lines of 1.5. They are decorative: there is always a text too.

const PATHS = {
  overview: "M2.5 11.5a5.5 5.5 0 1 1 11 0M8 11.5l2.5-3.4M4.2 13.5h7.6",
  schedules: "M3 4.2h10v9H3zM3 7h10M5.6 2.6v2.2M10.4 2.6v2.2M8 9v1.8l1.4.8",
  executions: "M2.8 3.4h6.4M2.8 8h4.2M2.8 12.6h3.4M9.4 7.2v6l4.4-3z",
  timeline: "M2.6 13.4h10.8M4 13.4V9.2M6.7 13.4V4.8M9.4 13.4V7.6M12.1 13.4V3",
  cluster:
    "M8 3.6h.01M8 4.8v2.4M8 7.2 4 10.4M8 7.2l4 3.2M6.2 2.2h3.6v2.6H6.2zM2.2 10.6h3.6v2.6H2.2zM10.2 10.6h3.6v2.6h-3.6z",
  access:
    "M9.6 6.4a3.2 3.2 0 1 1-1.5-2.7 3.2 3.2 0 0 1 1.5 2.7ZM9.2 8.2l4.4 4.4M11.6 10.6l-1.4 1.4M13.2 12.2l-1.4 1.4",
  search: "M7.2 11.7a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5l3 3",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  close: "M4 4l8 8M12 4l-8 8",
  check: "M3.2 8.6l3.1 3.1 6.5-7",
  checkCircle: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM5.5 8.2l1.8 1.8 3.3-3.7",
  crossCircle: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM6 6l4 4M10 6l-4 4",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 4.8V8l2.2 1.5",
  hourglass:
    "M4.5 2.5h7M4.5 13.5h7M5.3 2.5c0 3 2.7 3.6 2.7 5.5S5.3 10.5 5.3 13.5M10.7 2.5c0 3-2.7 3.6-2.7 5.5s2.7 2.5 2.7 5.5",
  warning: "M8 2.7 14 13.2H2zM8 6.6v3M8 11.4h.01",
  question:
    "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM6.3 6.3a1.75 1.75 0 1 1 2.5 1.6c-.5.3-.8.6-.8 1.2M8 11.2h.01",
  skip: "M3 4.2v7.6l5-3.8zM8.5 4.2v7.6l4.5-3.8zM13.5 4.2v7.6",
  stop: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM3.9 3.9l8.2 8.2",
  play: "M4.7 2.9v10.2l8-5.1z",
  pause: "M5.3 3.2v9.6M10.7 3.2v9.6",
  spin: "M8 2.2a5.8 5.8 0 1 1-5.8 5.8",
  retry: "M13.3 3v3.4H9.9M13 6.4A5.5 5.5 0 1 0 13.3 9.6",
  flag: "M3.5 14V2.5M3.5 3h8.7l-1.9 3 1.9 3H3.5",
  moon: "M13 9.7A5.6 5.6 0 0 1 6.3 3 5.6 5.6 0 1 0 13 9.7Z",
  sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM8 1.6v1.3M8 13.1v1.3M1.6 8h1.3M13.1 8h1.3M3.5 3.5l.9.9M11.6 11.6l.9.9M12.5 3.5l-.9.9M4.4 11.6l-.9.9",
  screen: "M2.2 3h11.6v7.8H2.2zM6 13.4h4M8 10.8v2.6",
  globe:
    "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM2 8h12M8 2c2 1.7 2.6 3.7 2.6 6S10 12.3 8 14C6 12.3 5.4 10.3 5.4 8S6 3.7 8 2Z",
  person: "M8 7.6a2.6 2.6 0 1 0 0-5.2 2.6 2.6 0 0 0 0 5.2ZM3 13.6c.4-2.5 2.4-3.9 5-3.9s4.6 1.4 5 3.9",
  leave: "M9.5 2.8H3.2v10.4h6.3M6.8 8h6.7M11 5.5 13.5 8 11 10.5",
  copy: "M5.6 5.6h7.8v7.8H5.6zM10.4 5.6V2.6H2.6v7.8h3",
  plus: "M8 3v10M3 8h10",
  trash: "M2.8 4.3h10.4M6.2 4.3V2.6h3.6v1.7M4.2 4.3l.6 9.1h6.4l.6-9.1M6.8 7v3.8M9.2 7v3.8",
  edit: "M3 13l.6-2.9L10.8 2.9l2.3 2.3L5.9 12.4zM9.3 4.4l2.3 2.3",
  down: "M4 6.2l4 4 4-4",
  right: "M6.2 4l4 4-4 4",
  left: "M9.8 4l-4 4 4 4",
  up: "M4 9.8l4-4 4 4",
  sort: "M5.3 6.5 8 3.8l2.7 2.7M5.3 9.5 8 12.2l2.7-2.7",
  filter: "M2.4 3.6h11.2M4.6 8h6.8M6.6 12.4h2.8",
  code: "M5.6 4.4 2 8l3.6 3.6M10.4 4.4 14 8l-3.6 3.6",
  terminal: "M2.2 3h11.6v10H2.2zM4.8 6.2 6.8 8l-2 1.8M8.4 10h2.8",
  form: "M3 2.6h10v10.8H3zM5.4 5.6h5.2M5.4 8h5.2M5.4 10.4h2.6",
  function: "M11.4 3.2c-2.2-.9-3.2.2-3.5 2.1L6.8 11c-.3 1.9-1.3 2.9-3.2 2.1M5.4 6.8h5",
  http: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM2 8h12M8 2c-3.4 3.6-3.4 8.4 0 12 3.4-3.6 3.4-8.4 0-12",
  event: "M8.9 1.9 3.6 9h3.6l-.5 5.1L12.4 7H8.6z",
  celery:
    "M8 14V6.5M8 9.8C8 7 5.9 5.4 3.2 5.4c0 2.8 1.9 4.4 4.8 4.4ZM8 7.2C8 4.6 9.9 2.6 12.8 2.6c0 2.9-1.9 4.6-4.8 4.6Z",
  crown: "M2.6 5l2.7 2.6L8 3.4l2.7 4.2L13.4 5l-1 7.4H3.6z",
  panel: "M2.4 3h11.2v10H2.4zM10 3v10",
  rail: "M2.4 3h11.2v10H2.4zM6 3v10",
  bell: "M4 11.4V7.2a4 4 0 0 1 8 0v4.2M2.8 11.4h10.4M6.8 13.6h2.4",
  mute: "M4 11.4V7.2a4 4 0 0 1 .6-2.1M6.2 3.6A4 4 0 0 1 12 7.2v2.2M2.8 11.4h7.4M6.8 13.6h2.4M2.6 2.6l10.8 10.8",
  send: "M13.6 2.4 2.4 6.8l4.4 2.4 2.4 4.4zM13.6 2.4 6.8 9.2",
} as const;

export type IconName = keyof typeof PATHS;

interface Props {
  name: IconName;
  size?: number;
  className?: string;
}

export function Icon({ name, size = 16, className = "" }: Props) {
  return (
    <svg
      viewBox="0 0 16 16"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth={name === "more" ? 2 : 1.5}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      className={`shrink-0 ${className}`}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
