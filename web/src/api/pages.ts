// Lists come in pages; each tells how to ask for the next.

interface Page {
  next_page_token: string;
}

/** For `getNextPageParam`. */
export function tokenAfter(last: Page): string | undefined {
  return last.next_page_token === "" ? undefined : last.next_page_token;
}
