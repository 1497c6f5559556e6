/** The logo. It shows a foliot: a bar with two weights on a staff with two pallets. */
export function Mark({ size = 22 }: { size?: number }) {
  return (
    <svg viewBox="0 0 24 24" width={size} height={size} aria-hidden="true" className="text-brass shrink-0">
      <g fill="none" stroke="currentColor" strokeWidth="1.9" strokeLinecap="round">
        <path d="M3.5 8.2h17M12 4v16.5" />
        <path d="M12 12.8h4M8 17h4" />
      </g>
      <g fill="currentColor">
        <rect x="2.4" y="9.7" width="3.6" height="4.6" rx="1" />
        <rect x="18" y="9.7" width="3.6" height="4.6" rx="1" />
      </g>
    </svg>
  );
}
